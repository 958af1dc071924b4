"""Types: annotations to JSON and back. `arguments` decodes, `output` encodes and checks."""
