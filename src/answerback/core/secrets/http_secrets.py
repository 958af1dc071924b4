"""Finds passwords and tokens in URLs and HTTP request headers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from .secret_forms import decode_base64
from .secret_names import is_secret_name

# A user without a password may be a token. The last form is a password that contains a slash,
# not a port: `user:pass/word@host`.
_LOGIN = re.compile(
    r"""://(?:[^\s/?#@:]*:(?P<password>[^\s/?#]*)
    | (?P<user>[^\s/?#]+)
    | [^\s/?#@:\[]*:(?!\d{1,5}(?:[/?#\s]|$))(?P<with_slash>\S{1,4000}))@
    """,
    re.VERBOSE,
)
_PARAMETER = re.compile(r"(?<=[?&;#])([^\s=&;#?]+)=")
_PARAMETER_VALUE = re.compile(r"[^\s&#]+")


def url_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each password, user without one, and secret parameter in URLs."""
    if "://" in text:
        for found in _LOGIN.finditer(text):
            yield found.span(found.lastgroup or 0)
        yield from _parameter_spans(text)


def secrets_in_url(url: str) -> Iterator[str]:
    """Yield the values of parameters with a secret's name, unchanged and unquoted."""
    for start, end in _parameter_spans(url):
        yield from (url[start:end], unquote(url[start:end]))


def secrets_in_headers(headers: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of headers with a secret's name, and the tokens and passwords in them.

    The names of *headers* are in lower case.
    """
    for name, value in headers.items():
        if name == "cookie":
            yield from (each.partition("=")[2].strip() for each in value.split(";"))
        elif is_secret_name(name):
            scheme, _, token = value.partition(" ")
            yield from (value, token.strip())
            if scheme.lower() == "basic":
                yield decode_base64(token).decode("utf-8", "replace").partition(":")[2]


def _parameter_spans(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while found := _PARAMETER.search(text, at):
        at = found.end()
        if is_secret_name(unquote(found[1])) and (value := _PARAMETER_VALUE.match(text, at)):
            at = value.end()
            yield value.span()
