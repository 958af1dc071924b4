"""What a tool gives back, worked out once from its return annotation."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from ..content import BLOCKS
from ..contract import Contract
from ..reply import Reply
from ..shape import BARE, EMPTY, RESULT, SPREAD, Shape
from ..types.unservable import check, is_object


class Returns(msgspec.Struct, frozen=True, kw_only=True):
    data: Any = Any
    """The type its data is checked against; `Any` is not checked."""
    shape: Shape = RESULT
    blocks_only: bool = False
    """It is annotated to give content, not data."""
    declared: bool = False
    """There is an output schema, which every success keeps to; not so for `Point | Image`."""


def read_returns(annotation: Any, contract: Contract, where: str) -> Returns:
    """Raises UnservableType, which says *where*, if no JSON can stand for its data."""
    members = [_data_type(member) for member in _members(annotation)]
    if all(map(_is_block, members)):
        return Returns(blocks_only=True)
    kept = [member for member in members if not _is_block(member)]
    if any(_plain(member) in (Any, object) for member in kept):
        return Returns()
    # Without replies and blocks an annotation stays whole: what is Annotated may be a union.
    whole = kept == list(_members(annotation))
    data = NoneType if annotation is None else annotation if whole else reduce(or_, kept)
    check(data, where)
    declared = len(kept) == len(members)
    return Returns(data=data, shape=_shape(data, contract), declared=declared)


def _shape(data: Any, contract: Contract) -> Shape:
    if _plain(data) is NoneType:
        return EMPTY
    if contract.spread_tuples and _is_fixed_tuple(data):
        return SPREAD
    if is_object(data) and not contract.wrap_objects:
        return BARE
    return RESULT


def _plain(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _members(annotation: Any) -> tuple[Any, ...]:
    plain = _plain(annotation)
    return get_args(plain) if get_origin(plain) in (Union, UnionType) else (annotation,)


def _data_type(annotation: Any) -> Any:
    """T for `Reply[T]`; a bare `Reply` may hold anything."""
    plain = _plain(annotation)
    if get_origin(plain) is Reply:
        return get_args(plain)[0]
    return Any if plain is Reply else annotation


def _is_block(annotation: Any) -> bool:
    """Blocks, or a list of them; beside blocks, a string in it is text."""
    annotation = _plain(annotation)
    if get_origin(annotation) in (list, tuple, Sequence):
        items = [item for item in get_args(annotation) if item is not ...]
        members = [member for item in items for member in _members(item)]
        blocks = [member for member in members if _is_block(member)]
        return bool(blocks) and all(member is str for member in members if member not in blocks)
    return isinstance(annotation, type) and issubclass(annotation, BLOCKS)


def _is_fixed_tuple(annotation: Any) -> bool:
    annotation = _plain(annotation)
    items = get_args(annotation)
    return get_origin(annotation) is tuple and bool(items) and ... not in items
