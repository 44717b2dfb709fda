"""What evalkit finds out with its own library: claims held to experiments, coverage, studies."""
