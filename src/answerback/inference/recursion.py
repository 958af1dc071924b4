"""Finds trees in the evidence: objects with a member that has objects of the same kind.

Without it, each level of a tree would have a type of its own.
"""

from __future__ import annotations

from .evidence import Evidence

_MIN_MEMBERS = 2


def fold_recursion(evidence: Evidence) -> None:
    """Count the branches of a tree at its root; `same_as` then leads back to the root."""
    is_changed = True
    while is_changed:
        # Folding one member adds the branches of others, such as those of `left` and `right`.
        is_changed = any(_fold(evidence, name) for name in list(evidence.members or ()))


def _fold(root: Evidence, name: str) -> bool:
    """Move a member's objects to the root if they are like it; return whether they are."""
    members = root.members or {}
    place = _place_of_objects(members[name])
    if place is None or place.members is None or place.values is not None:
        return False
    is_known = place.same_as is root
    if not is_known and not _is_like(root, place.members, name):
        return False
    branch = Evidence()
    branch.members, branch.objects = place.members, place.objects
    place.members, place.objects, place.same_as = None, 0, root
    root.merge(branch)
    return True


def _place_of_objects(member: Evidence) -> Evidence | None:
    """Return where a member has objects: it is one, or its items are."""
    if member.members is not None:
        return member
    return member.items


def _is_like(root: Evidence, members: dict[str, Evidence], name: str) -> bool:
    known = (root.members or {}).keys()
    return name in members and len(members) >= _MIN_MEMBERS and members.keys() <= known
