"""Over what the models of a run are met: in process, over a dialect, on recordings, or live."""
