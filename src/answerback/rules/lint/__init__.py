"""Checks files and logs of replies, and repairs them in place."""
