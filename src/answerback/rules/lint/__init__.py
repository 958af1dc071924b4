"""Checks the replies in recorded files and logs, and repairs them in place."""
