"""Reading: any server's reply, in any form, becomes a `Reply`."""

from .read_reply import read

__all__ = ["read"]
