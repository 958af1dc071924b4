"""The HTTP server: uvicorn, worker processes, start and shutdown."""
