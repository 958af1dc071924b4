"""A function and what was worked out about it: tools, resources and prompts."""
