"""Recognisers for failure texts, secrets and media types; they do not know the rules."""
