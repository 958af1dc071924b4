"""What a tool gives back, worked out once from its return annotation."""

from __future__ import annotations

from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from .content import BLOCKS
from .contract import Contract
from .reply import Reply
from .shape import BARE, EMPTY, RESULT, SPREAD, Shape
from .types.check import is_object


class Returns(msgspec.Struct, frozen=True, kw_only=True):
    data: Any = Any
    """The type its data is checked against; `Any` is not checked."""
    shape: Shape = RESULT
    blocks_only: bool = False
    """It is annotated to give content, not data."""
    always: bool = True
    """Every success has data; not so for `Point | Image`."""

    @property
    def declared(self) -> bool:
        """Whether there is an output schema, which a success then has to keep to."""
        return self.always and self.data not in (Any, object)


def read_returns(annotation: Any, contract: Contract) -> Returns:
    members = [_data_type(member) for member in _members(annotation)]
    if all(_is_block(member) for member in members):
        return Returns(blocks_only=True)
    kept = [member for member in members if member is not Reply and not _is_block(member)]
    if not kept or Any in kept or object in kept:
        return Returns()
    # An annotation without replies or blocks is kept whole: Annotated belongs to all of it.
    untouched = len(kept) == 1 or len(kept) == len(members)
    data = _data_type(annotation) if untouched and len(members) == 1 else reduce(or_, kept)
    return Returns(
        data=NoneType if data is None else data,
        shape=_shape(data, contract),
        always=not any(_is_block(member) for member in members),
    )


def _shape(data: Any, contract: Contract) -> Shape:
    if data in (None, NoneType):
        return EMPTY
    if contract.spread_tuples and _is_fixed_tuple(data):
        return SPREAD
    if is_object(data) and not contract.wrap_objects:
        return BARE
    return RESULT


def _members(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if get_origin(annotation) in (Union, UnionType) else (annotation,)


def _data_type(annotation: Any) -> Any:
    """T for `Reply[T]`; a bare `Reply` stays itself."""
    return get_args(annotation)[0] if get_origin(annotation) is Reply else annotation


def _is_block(annotation: Any) -> bool:
    if get_origin(annotation) in (list, tuple):
        items = [item for item in get_args(annotation) if item is not ...]
        return bool(items) and all(
            all(_is_block(member) for member in _members(item)) for item in items
        )
    return isinstance(annotation, type) and issubclass(annotation, BLOCKS)


def _is_fixed_tuple(annotation: Any) -> bool:
    if get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    items = get_args(annotation)
    return get_origin(annotation) is tuple and bool(items) and ... not in items
