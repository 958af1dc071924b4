"""Formats for findings: plain lines, JSON, GitHub commands, SARIF, JUnit, a terminal."""
