"""Writes the reference pages from the source: `make reference`."""
