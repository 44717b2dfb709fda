"""Search for what breaks a harness that can only be run."""
