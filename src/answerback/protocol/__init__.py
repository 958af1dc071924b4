"""Five versions of the Model Context Protocol. Knows messages, but not wires."""
