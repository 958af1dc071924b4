"""What can be set about serving over HTTP."""

from __future__ import annotations

import re

import msgspec

from ...errors import AnswerbackError
from ...limits import MAX_BODY

# As in a URL, so that nothing before or after the name can pass for it.
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/@,\[\]]+?)\.?)(?::\d*)?")
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/@,]+|null")


class BadOption(AnswerbackError):
    code = "BAD_OPTION"


def host_name(host: str) -> str:
    """The name in a lower-case `Host`, without its port; empty if that is none."""
    found = _AUTHORITY.fullmatch(host)
    return "" if found is None else found[1] or found[2]


def _host(given: str) -> str:
    # An IPv6 address is given without its brackets as often as with them.
    name = given if given.count(":") > 1 and given[0] != "[" else host_name(given.lower())
    if not name:
        raise BadOption(f"{given!r} is no host to allow; give a name, such as tools.example.com")
    return name.lower()


def _origin(given: str) -> str:
    origin = given.lower().rstrip("/")
    if origin != "*" and not _ORIGIN.fullmatch(origin):
        raise BadOption(
            f"{given!r} is no origin to allow; give a scheme and a host, "
            "such as https://app.example.com"
        )
    return origin


class WebOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How requests are let in."""

    max_body: int = MAX_BODY
    hosts: tuple[str, ...] = ()
    """Names the server answers to; without any, those of this machine when it is on loopback."""
    origins: tuple[str, ...] = ()
    """Web pages from these origins may call, such as `https://app.example.com`."""

    def __post_init__(self) -> None:
        put = msgspec.structs.force_setattr
        put(self, "hosts", tuple(map(_host, self.hosts)))
        put(self, "origins", tuple(map(_origin, self.origins)))


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how to listen."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    web: WebOptions = WebOptions()
