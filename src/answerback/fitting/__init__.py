"""Fits large replies into a budget, and stores the full replies."""
