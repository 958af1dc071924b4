"""ReturnType: what a tool returns, worked out once from its return annotation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from ..contract import Contract
from ..core.content import block_class, instead_of_result, is_result_class
from ..core.reply import ENVELOPE_MEMBERS, REPLY_MARKS, RESULT_MEMBERS, Reply
from ..core.shape import BARE, EMPTY, RESULT, Shape, spread_shape
from ..types import nodes
from ..types.annotation_reader import (
    can_take_member,
    holds_blocks,
    is_object,
    member_names,
    read_type,
)
from ..types.nodes import BLOCKS_AS_NAMES
from ..types.problems import UnservableType, is_plain_dict, name_of, without_metadata

# Types with these nodes may contain values of any class.
_OPEN_NODES = (nodes.Anything, nodes.Model, nodes.Custom)


class ReturnType(msgspec.Struct, frozen=True, kw_only=True):
    data_type: object = Any
    """The type to check the data against; `Any` means no check."""
    shape: Shape = RESULT
    blocks_only: bool = False
    """The annotation names only content blocks, so the tool returns no data."""
    declared: bool = False
    """Every success has data of the declared type, so the tool has an output schema.

    False for `Point | Image`: a success may be an image without data. False for a bare `dict`
    too, unless finished replies are sent as data.
    """
    finished: bool = False
    """A finished reply, such as an MCP result, is sent as a reply, not as data."""
    marks: frozenset[str] = REPLY_MARKS
    """Members that make a returned dict look like a reply, except those that the type declares."""
    form: Literal["reply", "flagged"] | None = None
    """Set if the declared class itself says whether the call failed.

    "reply": it has only a reply's members, so every value is a finished reply. "flagged": it
    also has other members, so only its failures are finished replies.
    """
    free_data: bool = False
    """A finished reply's data may be of any type, because a bare `dict` declares nothing."""
    by_value: bool = False
    """No type is declared, so the value decides the shape."""
    is_data: bool = False
    """Every value that is neither a Reply nor a block is data."""
    judges_lists: bool = False
    """A list of free objects may be a list of failures; the items of other lists are declared."""
    nested_blocks: Literal["none", "possible", "declared"] = "possible"
    """Whether the data may contain content blocks, which are sent as content."""


def read_return_type(
    annotation: object,
    contract: Contract,
    where: str,
    *,
    finished: bool = False,
    schema: Mapping[str, Any] | None = None,
) -> ReturnType:
    """Read the annotation; with *finished*, finished replies are recognised.

    *schema* is the author's schema for the data, for a function that declares no type. Raises
    UnservableType, which names *where*, if the data cannot be written as JSON.
    """
    if schema is not None:
        return _by_schema(annotation, contract, where, schema, finished)
    for member in map(without_metadata, _members(annotation)):
        instead = instead_of_result(member) if isinstance(member, type) else None
        if instead is not None:
            raise UnservableType(where, f"{member.__name__} cannot be returned here; {instead}")
    if not finished:
        return _read_data_type(annotation, contract, where)
    whole = [_data_type(member) for member in _members(annotation)]
    members = [member for member in whole if member not in (None, NoneType)]
    forms = [_form_of(member) for member in members]
    if "reply" in forms:
        data_type = _reply_data(annotation) if forms == ["reply"] == [_form_of(annotation)] else Any
        returns = _read_data_type(data_type, contract, where)
        form = None if None in forms else "reply"
        return msgspec.structs.replace(returns, finished=True, form=form, is_data=False)
    returns = _read_data_type(annotation, contract, where)
    if is_plain_dict(annotation):
        undeclared = msgspec.structs.replace(returns, declared=False, is_data=False)
        return msgspec.structs.replace(undeclared, finished=True, free_data=True)
    if "flagged" in forms:
        return msgspec.structs.replace(returns, finished=True, form="flagged", is_data=False)
    named = {name for member in members for name in member_names(_class_of(member))}
    return msgspec.structs.replace(
        returns,
        finished=True,
        marks=REPLY_MARKS - named,
        judges_lists=any(map(_is_free_list, members)),
    )


def _is_free_list(annotation: object) -> bool:
    """Return whether it is `list`, or a list of objects whose members are not declared."""
    plain = without_metadata(annotation)
    if plain is list:
        return True
    items = get_args(plain) if get_origin(plain) is list else ()
    return any(item in (Any, object) or is_plain_dict(item) for item in items)


def _read_data_type(annotation: object, contract: Contract, where: str) -> ReturnType:
    members = [_data_type(member) for member in _members(annotation)]
    if all(map(_is_block, members)):
        return ReturnType(blocks_only=True)
    data_members = [member for member in members if not _is_block(member)]
    if any(without_metadata(member) in (Any, object) for member in data_members):
        return ReturnType(by_value=True)
    # An annotation without replies or blocks is left unchanged: a union inside `Annotated` would
    # lose its metadata if it were rebuilt from its members.
    unchanged = data_members == list(_members(annotation))
    data = NoneType if annotation is None else annotation
    if not unchanged:
        data = reduce(or_, data_members)
    nested_blocks = _nested_blocks(data, where)
    declared = len(data_members) == len(members)
    spread = _spread(data) if contract.spread_tuples else None
    if spread is not None:
        data = spread[0]
    if nested_blocks == "declared":
        data = Annotated[data, BLOCKS_AS_NAMES]
    if spread is not None:
        shape = spread[1]
    elif without_metadata(data) is NoneType:
        shape = EMPTY
    else:
        shape = BARE if is_object(data) and not contract.wrap_objects else RESULT
    return ReturnType(
        data_type=data,
        shape=shape,
        declared=declared,
        is_data=declared,
        nested_blocks=nested_blocks,
    )


def _nested_blocks(data: object, where: str) -> Literal["none", "possible", "declared"]:
    """Return whether the type contains content blocks; raise UnservableType if it cannot be served.

    A name may still be undefined, because the first call reads the annotation again.
    """
    try:
        node = read_type(Annotated[data, BLOCKS_AS_NAMES], where)
    except NameError:
        return "none"
    if holds_blocks(node):
        return "declared"
    is_open = any(isinstance(each, _OPEN_NODES) for each in nodes.reachable(node))
    return "possible" if is_open else "none"


def _class_of(annotation: object) -> object:
    """Return the class that an annotation names, even for `Page[int]`."""
    plain = without_metadata(annotation)
    return get_origin(plain) or plain


def _form_of(annotation: object) -> Literal["reply", "flagged"] | None:
    cls = _class_of(annotation)
    if isinstance(cls, type) and is_result_class(cls):
        return "reply"
    names = member_names(cls).keys()
    is_result = {"content", "isError"} <= names
    is_envelope = "success" in names and not {"error", "data"}.isdisjoint(names)
    if not (is_result or is_envelope or {"ok", "error"} <= names):
        return None
    return "reply" if names <= ENVELOPE_MEMBERS | RESULT_MEMBERS else "flagged"


def _reply_data(annotation: object) -> object:
    """Return the data type of a reply-shaped class; Any if the data may be missing."""
    cls: Any = _class_of(annotation)
    if is_result_class(cls):
        return Any
    own = member_names(cls).get("data", member_names(cls).get("structuredContent"))
    if hasattr(cls, "model_fields"):
        required = {
            name: each.annotation for name, each in cls.model_fields.items() if each.is_required()
        }
    else:
        hints = get_type_hints(cls, include_extras=True)
        fields: Any = getattr(read_type(cls), "fields", ())
        required = {each.name: hints[each.name] for each in fields if each.required}
    data_type = required.get(own, Any)
    may_be_missing = NoneType in _members(data_type) or isinstance(data_type, TypeVar)
    return Any if may_be_missing else data_type


def _by_schema(
    annotation: object, contract: Contract, where: str, schema: Mapping[str, Any], finished: bool
) -> ReturnType:
    if without_metadata(annotation) not in (Any, object) and not is_plain_dict(annotation):
        raise TypeError(
            f"{where} has both a type, {name_of(annotation)}, and output_schema=; "
            "remove one of them: the schema is derived from the type"
        )
    is_object = schema.get("type") == "object"
    return ReturnType(
        data_type=dict[str, Any] if is_object else Any,
        shape=BARE if is_object and not contract.wrap_objects else RESULT,
        declared=True,
        finished=finished,
    )


def can_have_message(returns: ReturnType) -> bool:
    """Return whether the sent object can have a `message` that is not part of the data.

    It can if it is `{"result": …}`, or an object of one class without such a member.
    """
    if not returns.declared:
        return False
    if returns.shape is BARE:
        return can_take_member(returns.data_type, "message")
    return returns.shape is RESULT


def shape_of_value(value: object, encoded: bytes, contract: Contract) -> Shape:
    """Return the shape for *value*, for a tool that declares no type."""
    if value is None:
        return EMPTY
    if contract.spread_tuples and isinstance(value, tuple):
        return spread_shape(getattr(value, "_fields", ()), len(value))
    return BARE if encoded.startswith(b"{") and not contract.wrap_objects else RESULT


def _spread(data: object) -> tuple[Any, Shape] | None:
    """Return the type and shape of a fixed tuple or a NamedTuple, possibly optional."""
    optional = [member for member in _members(data) if member is not NoneType]
    plain = without_metadata(optional[0]) if len(optional) == 1 else None
    if not _is_fixed_tuple(plain):
        return None
    fields: tuple[str, ...] = getattr(plain, "_fields", ())
    # A NamedTuple is checked as a tuple of its members' types, whose schemas are named.
    hints = get_type_hints(plain, include_extras=True) if fields else {}
    items = tuple(hints.get(name, Any) for name in fields) if fields else get_args(plain)
    shape = spread_shape(fields, len(items))
    is_optional = len(_members(data)) > 1
    if is_optional and shape is not EMPTY:
        shape = msgspec.structs.replace(shape, optional=True)
    kind = tuple.__class_getitem__(items) if items else tuple[()]
    return (kind | None if is_optional else kind), shape


def _members(annotation: object) -> tuple[Any, ...]:
    """Return a union's members, or just the annotation itself."""
    plain = without_metadata(annotation)
    return get_args(plain) if get_origin(plain) in (Union, UnionType) else (annotation,)


def declares_reply(annotation: object) -> bool:
    """Return whether an annotation is `Reply`, `Reply[T]`, or a union containing one of them."""
    plain = map(without_metadata, _members(annotation))
    return any(each is Reply or get_origin(each) is Reply for each in plain)


def _data_type(annotation: object) -> object:
    """Return T for `Reply[T]`, Any for a bare `Reply`, and any other annotation unchanged."""
    plain = without_metadata(annotation)
    if get_origin(plain) is Reply:
        return get_args(plain)[0]
    return Any if plain is Reply else annotation


def _is_block(annotation: object) -> bool:
    """Return True for a block class, and for a list of blocks and strings that includes a block."""
    annotation = without_metadata(annotation)
    if get_origin(annotation) in (list, tuple, Sequence):
        items = [item for item in get_args(annotation) if item is not ...]
        members = [member for item in items for member in _members(item)]
        blocks = [member for member in members if _is_block_class(member)]
        return bool(blocks) and all(member is str for member in members if member not in blocks)
    return _is_block_class(annotation)


def _is_block_class(annotation: object) -> bool:
    plain = without_metadata(annotation)
    return isinstance(plain, type) and block_class(plain) is not None


def _is_fixed_tuple(annotation: object) -> bool:
    """Return True for `tuple[A, B]`, `tuple[()]` and a NamedTuple."""
    if isinstance(annotation, type) and issubclass(annotation, tuple):
        return hasattr(annotation, "_fields")
    return get_origin(annotation) is tuple and ... not in get_args(annotation)
