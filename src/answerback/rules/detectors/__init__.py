"""Recognisers for media types and for the message of an error object."""
