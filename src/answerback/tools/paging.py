"""Tools that return `Page[T]`, or an iterator, which is read into one page.

Such a tool has a `cursor` argument. Callers see cursors only in signed form, so a function only
receives cursors it created itself. A cursor may also point into a page that was stored because it
exceeded the caller's budget or limit; in that case, the function is not run again.
"""

from __future__ import annotations

import hashlib
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    Sequence,
)
from contextlib import aclosing, closing, nullcontext
from itertools import islice
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias, cast, get_args, get_origin

import msgspec

from ..core.list_page import Page, StoredPart
from ..core.reply import Reply
from ..core.signing import process_signer
from ..errors import INVALID_ARGUMENTS, ToolError
from ..types.arguments import Parameter
from ..types.problems import InvalidOutput, without_metadata
from .current_call import CURRENT
from .signature import Signature

if TYPE_CHECKING:
    from .current_call import RunningCall
    from .tool import Tool

MAX_ITEMS = 100_000
"""The maximum number of items read from an iterator."""
CURSOR = "cursor"
_ASYNC_ITERATORS = (AsyncIterator, AsyncGenerator)
_ITERATORS = (Iterator, Generator, *_ASYNC_ITERATORS)
_PURPOSE = b"cursor"
Sign: TypeAlias = Callable[[Page[Any]], Page[Any]]
"""Returns a page with its cursor signed."""
CursorAfter: TypeAlias = Callable[[StoredPart, int, Sequence[int]], str]
"""Returns the cursor for what follows the first items of a part: how many there are, and the sizes
of its items in bytes, as far as they are known."""
_DESCRIPTION = "The `next` of the previous page; leave it out for the first page."


class CursorToken(msgspec.Struct, array_like=True):
    """The content of a cursor."""

    tool: str
    owner: str
    """A digest of the user; empty if calls are not authenticated."""
    own: str | None = None
    """The author's own cursor; None if it points into a stored reply."""
    part: StoredPart | None = None
    arguments: bytes = b""
    """For a stored part, a digest of the other arguments, which must stay the same."""


_tokens = msgspec.msgpack.Decoder(CursorToken)


def paged_type(annotation: object) -> object | None:
    """Return the type that a tool with this return annotation sends; None if it is not paged.

    An iterator becomes `Page[T]`; `Page[T]` and `Reply[Page[T]]` stay unchanged.
    """
    plain = without_metadata(annotation)
    origin, items = get_origin(plain), get_args(plain)
    if origin is Page:
        return annotation
    if origin in _ITERATORS:
        return Page[items[0]]  # type: ignore[valid-type]  # known only at run time
    if origin is Reply and get_origin(without_metadata(items[0])) is Page:
        return annotation
    return None


def with_pages(tool: Tool, signature: Signature) -> Signature:
    """Return the signature with a `cursor` argument, and make the tool's function accept it.

    A function that returns neither pages nor an iterator is left alone. Raises TypeError.
    """
    returns = paged_type(signature.returns)
    if returns is None:
        return signature
    if signature.argument_object is not None:
        raise TypeError(
            f"{tool.owner} returns pages and takes all arguments as one object; name each "
            "argument, so that a cursor argument can be added"
        )
    own = next((each for each in signature.parameters if each.target == CURSOR), None)
    if own is not None and set(get_args(own.annotation)) != {str, type(None)}:
        raise TypeError(
            f"parameter 'cursor' of {tool.owner} must accept the next of an earlier page; "
            "write cursor: str | None = None"
        )
    process_signer()  # Create the key before a server forks, so that its workers share it.
    tool.is_paged = True
    tool.is_async = (
        tool.is_async or get_origin(without_metadata(signature.returns)) in _ASYNC_ITERATORS
    )
    tool.inline = tool.inline and not tool.is_async
    tool.fn = _for_one_page(tool, takes_cursor=own is not None)
    if own is not None:
        return msgspec.structs.replace(signature, returns=returns)
    added = Parameter(name=CURSOR, annotation=str | None, default=None, description=_DESCRIPTION)
    parameters = (*signature.parameters, added)
    return msgspec.structs.replace(signature, parameters=parameters, returns=returns)


def _for_one_page(tool: Tool, *, takes_cursor: bool) -> Callable[..., Any]:
    """Return the tool's function, wrapped to take a signed cursor and return one page."""
    fn, is_async = tool.fn, tool.is_async
    sign = _sign if takes_cursor else _refuse_next

    def run(**kwargs: object) -> object:
        cursor = kwargs.get(CURSOR)
        if isinstance(cursor, str):
            token = _opened(cursor)
            if token.part is not None:
                return _continued(token.part, token.owner)
            kwargs[CURSOR] = token.own
        elif not takes_cursor:
            kwargs.pop(CURSOR, None)
        value = fn(**kwargs)
        if is_async or isinstance(value, CoroutineType):
            return _read_on_loop(value, sign)
        return _read(value, sign)

    async def run_async(**kwargs: object) -> object:
        return await cast("Awaitable[object]", run(**kwargs))

    runs: Any = run_async if is_async else run
    runs.__wrapped__ = fn
    runs.__doc__ = fn.__doc__
    found: Callable[..., Any] = runs
    return found


def _sign(page: Page[Any]) -> Page[Any]:
    """Return a page with its cursor signed."""
    if page.next is None:
        return page
    if not isinstance(page.next, str):
        raise InvalidOutput("next", f"expected a str, got {type(page.next).__name__}")
    call = _call()
    token = CursorToken(call.name, call.owner, page.next)
    return msgspec.structs.replace(page, next=_signed(token))


def _refuse_next(page: Page[Any]) -> Page[Any]:
    """Return a page without a cursor; raises InvalidOutput if it has one."""
    if page.next is not None:
        problem = "the function has no parameter for it; add cursor: str | None = None"
        raise InvalidOutput("next", problem)
    return page


def _read(value: object, sign: Sign) -> object:
    """Return an iterator's items as one page, or a page with its cursor signed."""
    if isinstance(value, Iterator):
        with closing(value) if isinstance(value, Generator) else nullcontext():
            return _whole_page(list(islice(value, MAX_ITEMS + 1)))
    if isinstance(value, Page):
        return sign(value)
    if isinstance(value, Reply) and isinstance(value.data, Page):
        return msgspec.structs.replace(value, data=sign(value.data))
    return value


async def _read_on_loop(value: object, sign: Sign) -> object:
    """Like `_read`, for a coroutine's result and for an async iterator."""
    if isinstance(value, CoroutineType):
        value = await value
    if not isinstance(value, AsyncIterator):
        return _read(value, sign)
    items: list[Any] = []
    async with aclosing(value) if isinstance(value, AsyncGenerator) else nullcontext():
        async for item in value:
            items.append(item)
            if len(items) > MAX_ITEMS:
                break
    return _whole_page(items)


def _whole_page(items: list[Any]) -> Page[Any]:
    if len(items) > MAX_ITEMS:
        raise ToolError(
            f"The tool yields more than {MAX_ITEMS:,} items",
            code="TOO_LARGE",
            hint="ask for less; its author can return Page(items, next=…) instead of yielding",
        )
    return Page(items, total=len(items))


def open_cursor(cursor: str, call: RunningCall) -> CursorToken:
    """Return a cursor's content; raises ToolError if the tool did not issue it to this user."""
    packed = process_signer().verify(cursor, _PURPOSE)
    token = None if packed is None else _tokens.decode(packed)
    if token is None or token.tool != call.name or token.owner != call.owner:
        raise _wrong_cursor("this tool did not issue that cursor to you")
    return token


def _opened(cursor: str) -> CursorToken:
    """Like `open_cursor`, for the current call; its other arguments must match the first page's."""
    call = _call()
    token = open_cursor(cursor, call)
    if token.part is not None and token.arguments != _digest(call.arguments):
        raise _wrong_cursor("the cursor is for different arguments")
    return token


def _wrong_cursor(problem: str) -> ToolError:
    hint = "send the next of the previous page, with the same arguments, or leave cursor out"
    return ToolError(f"Invalid arguments: {problem}", code=INVALID_ARGUMENTS, hint=hint)


def cursor_expired() -> ToolError:
    """Return the error for a cursor whose list is no longer stored."""
    hint = "leave cursor out to start again"
    return ToolError("The rest of this list has expired", code="CURSOR_EXPIRED", hint=hint)


def cursors_for(call: RunningCall) -> CursorAfter:
    """Return a function that makes the cursors with which a call like *call* continues."""
    name, owner, arguments = call.name, call.owner, _digest(call.arguments)

    def cursor_after(part: StoredPart, count: int, sizes: Sequence[int]) -> str:
        is_known = part.at and len(sizes) >= count
        at = part.at + sum(sizes[:count]) + count if is_known else 0
        rest = msgspec.structs.replace(part, offset=part.offset + count, at=at)
        return _signed(CursorToken(name, owner, None, rest, arguments))

    return cursor_after


def _signed(token: CursorToken) -> str:
    return process_signer().sign(msgspec.msgpack.encode(token), _PURPOSE)


def _call() -> RunningCall:
    call: RunningCall = CURRENT.get()
    return call


def _digest(arguments: bytes) -> bytes:
    """Return a digest, independent of order, of all arguments except the cursor."""
    found = msgspec.json.decode(arguments)
    found.pop(CURSOR, None)
    return hashlib.sha256(msgspec.json.encode(found, order="deterministic")).digest()[:16]


async def _continued(part: StoredPart, owner: str) -> Page[Any]:
    """Return the rest of a stored page; the function is not run again."""
    call = _call()
    runtime = call.runtime
    room = None
    tool = call.tool
    # Other wires send everything, a task's reply is stored as is, and text may be shorter than
    # the JSON of its data.
    if tool and call.wire == "mcp" and call.stage == "whole" and tool.shape.structured:
        room = tool.budget
    page = None if runtime is None else await runtime.stored_page(part, owner, room)
    if page is None:
        raise cursor_expired()
    call.part = part
    call.item_sizes = [memoryview(item).nbytes for item in page.items]
    return page
