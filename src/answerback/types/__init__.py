"""Converts typed values to JSON and back: `arguments` decodes, `output` encodes and checks."""
