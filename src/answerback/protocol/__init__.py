"""The Model Context Protocol, five versions of it. Knows messages; knows nothing of wires."""
