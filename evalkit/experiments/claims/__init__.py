"""The claims that the project starts from, each with an experiment on scripted models."""
