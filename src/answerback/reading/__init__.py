"""Reads any server's reply, in any form, as a `Reply`."""

from .read_reply import read

__all__ = ["read"]
