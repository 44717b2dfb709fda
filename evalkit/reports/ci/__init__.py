"""What a build asks of a run: the gate, its rules and baseline, and whether there was anything to judge."""
