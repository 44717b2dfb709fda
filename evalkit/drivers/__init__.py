"""What drives the reference loop: in process, over an SDK, with a live model, on recordings."""
