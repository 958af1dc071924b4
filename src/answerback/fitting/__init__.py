"""Replies that fit: a reply larger than its tool's budget is cut, and its whole is kept."""
