"""Masks the passwords and tokens in URLs and commands, for errors, labels and logs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote

from ..rules.detectors.named_secrets import mask_text
from ..rules.detectors.secrets import MASK
from ..types.secret_names import is_secret_name

# The second form is a password with a slash in it, which is no port: `user:pass/word@host`.
_PASSWORD = re.compile(
    r"(://[^\s/?#@:\[]*:)(?:[^\s/?#]*@|(?!\d{1,5}(?:[/?#\s]|$))\S*@)", re.IGNORECASE
)
_USER = re.compile(r"://[^\s/?#@:]+@")
_PARAMETER = re.compile(r"(?<=[?&;#])([^\s=&;#?]+)=[^\s&;#]+")
# An option, or a variable with its value.
_NAME = re.compile(r"([\w.-]+)(?:(=)|\Z)")


def shown(text: str) -> str:
    """The text, such as a URL, without the passwords and tokens in its URLs."""
    if "://" not in text:
        return text
    text = _USER.sub(f"://{MASK}@", _PASSWORD.sub(rf"\g<1>{MASK}@", text))
    return _PARAMETER.sub(_masked_parameter, text)


def shown_command(words: Sequence[str]) -> list[str]:
    """The words without `--token=…`, the word after `--token`, `API_KEY=…` and secrets in URLs."""
    found: list[str] = []
    is_value = False
    for word in words:
        name = _NAME.match(word)
        is_named = name is not None and is_secret_name(name[1].lstrip("-"))
        if is_value:
            found.append(MASK)
        elif name and is_named and name[2]:
            found.append(f"{name[1]}={MASK}")
        else:
            found.append(mask_text(shown(word)))
        is_value = is_named and word.startswith("-") and "=" not in word
    return found


def _masked_parameter(found: re.Match[str]) -> str:
    return f"{found[1]}={MASK}" if is_secret_name(unquote(found[1])) else found[0]
