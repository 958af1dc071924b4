"""Widgets: HTML pages that a host shows beside a tool's reply."""
