"""Tools, resources and prompts: a function, its options and what its signature tells."""
