"""The links of a Markdown page, read and replaced; code is left as it is."""

from __future__ import annotations

import re
from collections.abc import Callable

_CODE_OR_LINK = re.compile(
    r"^```.*?^```$"
    r"|(?P<ticks>`+)(?:(?!\n\n).)+?(?<!`)(?P=ticks)(?!`)"
    r"|(?P<before>\]\(|\b(?:href|src|srcset)=\")(?P<link>[^)\s\"]+)",
    re.MULTILINE | re.DOTALL,
)


def is_outside(link: str) -> bool:
    """Whether a link leads to another host, or to no file at all, such as `mailto:`."""
    return re.match(r"[a-z][a-z0-9+.-]*:|//", link) is not None


def replace_links(text: str, replacement: Callable[[str], str]) -> str:
    """Replace each link to a file or an anchor of this site."""

    def replace(found: re.Match[str]) -> str:
        link = found["link"]
        if link is None or is_outside(link):
            return found[0]
        return found["before"] + replacement(link)

    return _CODE_OR_LINK.sub(replace, text)


def links(text: str) -> list[str]:
    """The links to files and anchors of this site."""
    found: list[str] = []

    def keep(link: str) -> str:
        found.append(link)
        return link

    replace_links(text, keep)
    return found
