"""Which dialect a caller asks for with its `Accept` header."""

from __future__ import annotations

from collections.abc import Iterator

from ..contract import Contract, Dialect

PROBLEM = "application/problem+json"
NAMED: dict[str, Dialect] = {
    PROBLEM: "problem",
    "application/vnd.answerback.mcp+json": "mcp",
    "application/vnd.answerback.envelope+json": "envelope",
}
"""What a dialect is asked for by; in this order where a caller likes two the same."""

_OWN = ("application/json", "application/*", "*/*")
"""What the contract's own dialect is asked for by, the most particular first."""


def choose(accept: str | None, contract: Contract, *, failed: bool) -> Dialect:
    """The dialect for a reply; the contract's own where nothing that is asked for will do.

    A dialect asked for by name comes before `application/json` of the same quality.
    `problem` is for replies that *failed*, so a caller can ask for it beside another.
    """
    # What most callers send is not worth parsing.
    if not accept or accept in _OWN:
        return contract.http
    asked = dict(_qualities(accept))
    chosen = contract.http
    best = next((asked[media] for media in _OWN if media in asked), 0.0)
    named = False
    for media, dialect in NAMED.items():
        quality = asked.get(media, 0.0)
        if not quality or (media == PROBLEM and not failed):
            continue
        if quality > best or (quality == best and not named):
            chosen, best, named = dialect, quality, True
    return chosen


def _qualities(accept: str) -> Iterator[tuple[str, float]]:
    """Each media type with its quality from 0 to 1; what cannot be understood is left out."""
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
