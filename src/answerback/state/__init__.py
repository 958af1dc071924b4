"""State in PostgreSQL, shared by servers and workers on several machines."""
