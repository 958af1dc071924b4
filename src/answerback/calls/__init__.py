"""The path of every call, from its arguments to its checked reply."""
