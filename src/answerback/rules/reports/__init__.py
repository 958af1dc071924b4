"""Formats for findings: plain lines, JSON, SARIF, a terminal."""
