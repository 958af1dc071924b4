"""The keys of `_meta` that hosts read and write: their table, their types and their check."""
