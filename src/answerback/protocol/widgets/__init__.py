"""Widgets: HTML pages that a host shows beside the reply of a tool."""
