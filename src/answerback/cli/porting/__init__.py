"""Porting: edits a server of FastMCP or the official SDK into an App.

It changes what can be changed without understanding the program, and notes the rest for a person.
Files are edited by the positions of their syntax tree, so comments and layout stay.
"""
