"""Names that a provider accepts, for tools and for properties, and the way back."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import sha256

from .provider_rules import NameRule

_DIGEST = 8
"""The digest characters that distinguish two names that would otherwise be the same."""


def fitting_names(names: Iterable[str], rule: NameRule | None) -> dict[str, str]:
    """Return the accepted name for each; those already accepted stay unchanged.

    The others do not depend on the order: where two would be the same, both end with a digest of
    the original.
    """
    names = list(names)
    if rule is None:
        return {name: name for name in names}
    accepted = re.compile(rule.pattern)
    found = {name: name for name in names if accepted.fullmatch(name)}
    proposed = {name: _proposed(name, rule) for name in names if name not in found}
    used = Counter([*found.values(), *proposed.values()])
    for name, new in proposed.items():
        is_cut = len(name) > rule.length
        found[name] = _with_digest(new, name, rule) if is_cut or used[new] > 1 else new
    return {name: found[name] for name in names}


def _proposed(name: str, rule: NameRule) -> str:
    # A hostile name may have millions of characters; the result has only the first ones.
    new = re.sub(f"[^{rule.characters}]", "_", name[: rule.length]) or "_"
    if rule.first and not re.match(f"[{rule.first}]", new):
        new = "_" + new
    return new[: rule.length]


def _with_digest(new: str, name: str, rule: NameRule) -> str:
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{new[: rule.length - _DIGEST - 1]}_{digest}"
