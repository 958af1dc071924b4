"""State in PostgreSQL, which the servers and workers of several machines share."""
