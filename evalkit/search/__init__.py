"""Worst cases: what no behaviour of a model can make of a strategy, and what the scenarios catch."""
