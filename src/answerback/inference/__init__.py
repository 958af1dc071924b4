"""Infers types from recorded replies, and writes them as Python."""
