"""Recognises failure texts, secrets and media types; knows nothing of rules."""
