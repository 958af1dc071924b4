"""The `_meta` keys that hosts read and write: their table, types and check."""
