"""The judge: whether a value or a text is a failure, a finished reply or data."""
