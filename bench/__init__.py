"""Benchmarks. Each figure is a ratio to something measured in the same run: machines are noisy."""
