"""Masks the passwords and tokens in URLs, for errors, labels and logs."""

from __future__ import annotations

import re
from urllib.parse import unquote

from ..rules.detectors.secrets import MASK
from ..types.secret_names import is_secret_name

# The second form is a password with a slash in it, which is no port: `user:pass/word@host`.
_PASSWORD = re.compile(
    r"(://[^\s/?#@:\[]*:)(?:[^\s/?#]*@|(?!\d{1,5}(?:[/?#\s]|$))\S*@)", re.IGNORECASE
)
_USER = re.compile(r"://[^\s/?#@:]+@")
_PARAMETER = re.compile(r"(?<=[?&;#])([^\s=&;#?]+)=[^\s&;#]+")


def shown(text: str) -> str:
    """The text, such as a URL, without the passwords and tokens in its URLs."""
    if "://" not in text:
        return text
    text = _USER.sub(f"://{MASK}@", _PASSWORD.sub(rf"\g<1>{MASK}@", text))
    return _PARAMETER.sub(_masked_parameter, text)


def _masked_parameter(found: re.Match[str]) -> str:
    return f"{found[1]}={MASK}" if is_secret_name(unquote(found[1])) else found[0]
