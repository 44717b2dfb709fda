"""Benchmarks: ratios measured in one run. ``make bench`` writes them to ``reports/bench/``."""
