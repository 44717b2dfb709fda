"""Studies: what strategies do in settings that are made for one question, with a command for each."""
