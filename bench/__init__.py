"""Figures, each as a ratio against something measured in the same run: machines are noisy."""
