"""ReturnType: what a tool returns, worked out once from its return annotation."""

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
from ..types.annotation_reader import check_type, is_object


class ReturnType(msgspec.Struct, frozen=True, kw_only=True):
    data_type: Any = Any
    """The type that the data is checked against; with `Any` it is not checked."""
    shape: Shape = RESULT
    blocks_only: bool = False
    """The annotation names content blocks only, so the tool returns no data."""
    declared: bool = False
    """Every success has data of the declared type, so the tool has an output schema.

    False for `Point | Image`: a success may be an image without data.
    """


def read_return_type(annotation: Any, contract: Contract, where: str) -> ReturnType:
    """Raise UnservableType, which names *where*, if the data cannot be written as JSON."""
    members = [_data_type(member) for member in _members(annotation)]
    if all(map(_is_block, members)):
        return ReturnType(blocks_only=True)
    data_members = [member for member in members if not _is_block(member)]
    if any(_without_metadata(member) in (Any, object) for member in data_members):
        return ReturnType()
    # An annotation without replies and blocks is kept whole: a union inside of `Annotated`
    # would lose its metadata if it were built again from its members.
    unchanged = data_members == list(_members(annotation))
    data = NoneType if annotation is None else annotation
    if not unchanged:
        data = reduce(or_, data_members)
    check_type(data, where)
    declared = len(data_members) == len(members)
    return ReturnType(data_type=data, shape=_shape(data, contract), declared=declared)


def _shape(data: Any, contract: Contract) -> Shape:
    if _without_metadata(data) is NoneType:
        return EMPTY
    if contract.spread_tuples and _is_fixed_tuple(data):
        return SPREAD
    if is_object(data) and not contract.wrap_objects:
        return BARE
    return RESULT


def _without_metadata(annotation: Any) -> Any:
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _members(annotation: Any) -> tuple[Any, ...]:
    """Return the members of a union, or the annotation alone."""
    plain = _without_metadata(annotation)
    return get_args(plain) if get_origin(plain) in (Union, UnionType) else (annotation,)


def _data_type(annotation: Any) -> Any:
    """Return T for `Reply[T]`, Any for a bare `Reply`, and any other annotation unchanged."""
    plain = _without_metadata(annotation)
    if get_origin(plain) is Reply:
        return get_args(plain)[0]
    return Any if plain is Reply else annotation


def _is_block(annotation: Any) -> bool:
    """Return True for a block class, and for a list of blocks and strings with a block in it."""
    annotation = _without_metadata(annotation)
    if get_origin(annotation) in (list, tuple, Sequence):
        items = [item for item in get_args(annotation) if item is not ...]
        members = [member for item in items for member in _members(item)]
        blocks = [member for member in members if _is_block(member)]
        return bool(blocks) and all(member is str for member in members if member not in blocks)
    return isinstance(annotation, type) and issubclass(annotation, BLOCKS)


def _is_fixed_tuple(annotation: Any) -> bool:
    annotation = _without_metadata(annotation)
    items = get_args(annotation)
    return get_origin(annotation) is tuple and bool(items) and ... not in items
