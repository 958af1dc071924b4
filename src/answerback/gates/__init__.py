"""Gates: what a caller must pass before a tool, resource, prompt or completion runs."""
