"""Infers types from recorded replies, writes them as Python, and checks other replies by them."""
