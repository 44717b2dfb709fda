"""What evalkit starts, and its end: worker processes, guarded programs, temporary folders."""
