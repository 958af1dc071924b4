"""What can be set about serving over HTTP."""

from __future__ import annotations

import msgspec

from ..http import MAX_BODY


class WebOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are let in."""

    max_body: int = MAX_BODY
    hosts: tuple[str, ...] = ()
    """Names the server answers to; without any, those of this machine when it is on loopback."""
    origins: tuple[str, ...] = ()
    """Web pages from these origins may call, such as `https://app.example.com`."""


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how to listen."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    web: WebOptions = WebOptions()
