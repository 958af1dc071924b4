"""The links of a Markdown page, read and replaced; blocks of code are left as they are."""

from __future__ import annotations

import re
from collections.abc import Callable

_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?P<before>\]\(|\b(?:href|src|srcset)=\")(?P<link>[^)\s\"]+)")


def is_outside(link: str) -> bool:
    """Whether a link leads to another host, or to no file at all, such as `mailto:`."""
    return re.match(r"[a-z][a-z0-9+.-]*:|//", link) is not None


def replace_links(text: str, replacement: Callable[[str], str]) -> str:
    """Replace each link to a file or an anchor of this site."""

    def replace(found: re.Match[str]) -> str:
        link = found["link"]
        return found["before"] + (link if is_outside(link) else replacement(link))

    # A split by a pattern with a group returns text and fences in turn.
    parts = _FENCE.split(text)
    parts[::2] = [_LINK.sub(replace, part) for part in parts[::2]]
    return "".join(parts)


def links(text: str) -> list[str]:
    """The links to files and anchors of this site."""
    found: list[str] = []

    def keep(link: str) -> str:
        found.append(link)
        return link

    replace_links(text, keep)
    return found
