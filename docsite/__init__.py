"""Builds the documentation: the reference from the code, and the site from the pages."""
