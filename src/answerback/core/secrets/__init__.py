"""Secrets: their names, their forms, their places in URLs and headers, and their masking."""
