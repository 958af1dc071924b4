"""The console: a page in the browser that calls an app's tools over every wire."""
