"""Replies that fit: what is left out of a reply that is too large, and where the whole is kept."""
