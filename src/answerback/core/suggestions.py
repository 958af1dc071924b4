"""Suggests known names for an unknown name: "did you mean 'add'?"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

# difflib takes some microseconds per name, and a caller waits.
_MAX_COMPARED = 32


def did_you_mean(found: Sequence[str], *, quoted: bool = True) -> str:
    """Return the question for the names that were found; an empty text if there are none."""
    names = map(repr, found) if quoted else found
    return f"did you mean {' or '.join(names)}?" if found else ""


def similar_names(name: str, known: Iterable[str], limit: int = 1) -> list[str]:
    """Return up to *limit* known names that the caller may have meant by *name*.

    Of many names only the *_MAX_COMPARED* nearest by their letters and lengths are compared.
    """
    import difflib

    # Known names are at most 128 characters long, and difflib is slow on long texts.
    name, known = name[:128], list(known)
    folded = name.casefold()
    if same := [each for each in known if each.casefold() == folded]:
        return same[:limit]
    if len(known) > _MAX_COMPARED:
        letters, length = set(name), len(name)
        known.sort(
            key=lambda each: (len(letters.symmetric_difference(each)), abs(len(each) - length))
        )
        del known[_MAX_COMPARED:]
    return difflib.get_close_matches(name, known, n=limit)
