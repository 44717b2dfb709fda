"""Exhaustive exploration: proof or shortest counterexample."""
