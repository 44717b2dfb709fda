"""From a recorded incident to a scenario that reproduces it."""
