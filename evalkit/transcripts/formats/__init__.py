"""The formats of recorded runs: one module each, recognised by several fields together."""
