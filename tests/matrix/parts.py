"""The 15 replies of the matrix, and the parts of each that a model should see.

A part is a mark that stands nowhere else, so that it is found in whatever form a framework gives.
"""

from __future__ import annotations

import base64
from typing import NamedTuple

TEXT = "the sky is grey"
DATA = "humidity"
ITEM = "Bergen"
MESSAGE = "no city Osl"
DETAIL = "Oslo-Sentrum"
HINT = "try a city in Norway"
SECRET = "hunter2"
LINK = "https://example.com/report"
LAST = "row-1999-end"
META = "page-77"
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
WAV = b"RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x40\x1f\x00\x00"
ERROR = "FLAG:failed"
"""The mark of a failure: a driver writes it if the framework tells the model of a failure."""


class Case(NamedTuple):
    """A reply: the tool that gives it, and the marks of its parts."""

    tool: str
    about: str
    parts: dict[str, str]
    never: str = ""
    """A mark that no model may see."""


def _base64(data: bytes) -> str:
    # The last characters may depend on what follows.
    return base64.b64encode(data).decode()[:40]


CASES = [
    Case("text", "a text", {"text": TEXT}),
    Case("data", "an object", {"data": DATA}),
    Case("items", "a list of objects", {"data": ITEM}),
    Case("both", "a text of its own beside data", {"text": TEXT, "data": DATA}),
    Case("failed", "an error", {"flag": ERROR, "message": MESSAGE}),
    Case(
        "failed_with_details",
        "an error with details and a hint",
        {"flag": ERROR, "message": MESSAGE, "details": DETAIL, "hint": HINT},
    ),
    Case("crashed", "an unexpected exception", {"flag": ERROR}, never=SECRET),
    Case("image", "an image", {"image": _base64(PNG)}),
    Case("image_and_data", "an image beside data", {"image": _base64(PNG), "data": DATA}),
    Case("audio", "audio", {"audio": _base64(WAV)}),
    Case("link", "a text and a link", {"text": TEXT, "link": LINK}),
    Case("embedded", "an embedded text", {"text": TEXT}),
    Case("empty", "nothing", {}),
    Case("large", "2,000 rows", {"data": LAST}),
    Case("widget", "data, and metadata for a widget", {"data": DATA}, never=META),
]


def cell(case: Case, shown: str) -> str:
    """The cell of the table: the parts that are missing, or what should not be there.

    An image or audio that is missing, but has a line about it, is named.
    """
    if shown.startswith("RAISED "):
        return "**raises**"
    missing = [
        f"{part} named" if f"[{part}: " in shown else f"no {part}"
        for part, mark in case.parts.items()
        if mark not in shown
    ]
    leaked = ["**shows what it must not**"] if case.never and case.never in shown else []
    return ", ".join([*missing, *leaked]) or "all"
