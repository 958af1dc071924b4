"""The one path of a call: from its arguments to its checked reply."""
