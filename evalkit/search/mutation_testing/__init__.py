"""Loops with one rule broken each, and which scenarios notice."""
