"""Builds the documentation site from `docs/`: `make docs` and `make docs-serve`."""
