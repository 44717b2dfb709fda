"""The page of a run, and the look that all pages share."""
