"""Chooses the dialect of a reply from the request's `Accept` header."""

from __future__ import annotations

from collections.abc import Iterator

from ..contract import Contract, Dialect
from .status_and_headers import JSON, PROBLEM

MEDIA_TYPES: dict[str, Dialect] = {
    PROBLEM: "problem",
    "application/vnd.answerback.mcp+json": "mcp",
    "application/vnd.answerback.envelope+json": "envelope",
}
"""The media types that name a dialect; if two have equal quality, the first wins."""

_DEFAULTS = (JSON, "application/*", "*/*")
"""The media types that request the contract's own dialect, most specific first."""


def choose(accept: str | None, contract: Contract, *, failed: bool) -> Dialect:
    """Return a reply's dialect, or the contract's own if no requested media type matches.

    A dialect requested by name wins over `application/json` with the same quality.
    `problem` is used only for replies that *failed*, so a client can name it along with another.
    """
    # Most clients send one of these: skip parsing.
    if not accept or accept in _DEFAULTS:
        return contract.http
    asked = dict(_qualities(accept))
    chosen = contract.http
    best = next((asked[media] for media in _DEFAULTS if media in asked), 0.0)
    named = False
    for media, dialect in MEDIA_TYPES.items():
        quality = asked.get(media, 0.0)
        if not quality or (media == PROBLEM and not failed):
            continue
        if quality > best or (quality == best and not named):
            chosen, best, named = dialect, quality, True
    return chosen


def prefers_json(accept: str, media: str) -> bool:
    """Return whether JSON has a higher quality than *media*."""
    asked = dict(_qualities(accept))
    return _quality(asked, JSON) > _quality(asked, media.partition(";")[0].strip().lower())


def prefers_html(accept: str) -> bool:
    """Return whether HTML is named, and JSON has a lower quality or matches only a wildcard."""
    asked = dict(_qualities(accept))
    html = asked.get("text/html", 0.0)
    return html > asked.get(JSON, 0.0) and html >= _quality(asked, JSON)


def _quality(asked: dict[str, float], media: str) -> float:
    """Return the quality of the most specific entry that matches *media*, or 0 if none does."""
    entries = (media, media.partition("/")[0] + "/*", "*/*")
    return next((asked[entry] for entry in entries if entry in asked), 0.0)


def _qualities(accept: str) -> Iterator[tuple[str, float]]:
    """Yield each media type with its quality from 0 to 1; malformed entries are skipped."""
    for entry in accept.split(","):
        media, *parameters = entry.split(";")
        quality = next(
            (
                value
                for name, _, value in (part.partition("=") for part in parameters)
                if name.strip().lower() == "q"
            ),
            "1",
        )
        try:
            number = float(quality)
        except ValueError:
            continue
        if 0 <= number <= 1:
            yield media.strip().lower(), number
