"""The reference loop: a termination strategy as pure functions over a small state."""
