"""Widgets: pages that a host shows beside a reply."""
