"""Prints a reply: text on a terminal, JSON to a pipe, images and other bytes to `--output`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from ..contract import Contract, Dialect
from ..core.content import Audio, Block, Embedded, Image
from ..core.reply import Error, Reply
from ..core.shape import RESULT, Shape
from ..dialects import HttpReply, shape_of, write
from ..server.process import Stdout
from .program import (
    CannotWrite,
    printable_json,
    printable_line,
    write_json,
    write_note,
    write_stderr,
    write_stdout,
)
from .terminal_peer import stderr_is_terminal

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from .program import Options


def add_output_options(parser: ArgumentParser) -> None:
    text = "print JSON in this dialect (default when piped: the contract's)"
    parser.add_argument("--dialect", choices=get_args(Dialect), help=text)
    text = "save images, audio and other bytes to FILE, or the piped output if there are none"
    parser.add_argument("-o", "--output", metavar="FILE", help=text)


def check_output(options: Options) -> None:
    """Raise CannotWrite if `--output` is not writable, before a call has side effects."""
    if options.output is None:
        return
    folder = os.path.dirname(options.output) or os.curdir
    if not os.path.isdir(folder):
        raise CannotWrite(f"cannot write {options.output}: there is no folder {folder!r}")
    if os.path.isdir(options.output):
        raise CannotWrite(f"cannot write {options.output}: it is a folder")


def first_items(reply: Reply[Any], limit: int | None) -> Reply[Any]:
    """Return the reply with only the first items of its list or page; print how many there are."""
    if limit is None or reply.error is not None or not reply.has_data:
        return reply
    data = msgspec.json.decode(reply.encoded or msgspec.json.encode(reply.data))
    items = data.get("items") if isinstance(data, dict) else data
    if not isinstance(items, list) or len(items) <= limit:
        return reply
    write_note(f"these are the first {limit:,} of {len(items):,} items")
    first: Any = items[:limit]
    if isinstance(data, dict):
        first = data | {"items": first}
        if "returned" in data:
            first["returned"] = limit
    return msgspec.structs.replace(reply, data=first, encoded=None)


def print_reply(
    reply: Reply[Any],
    contract: Contract,
    options: Options,
    out: Stdout,
    *,
    advice: str | None = None,
    as_file: bool = False,
) -> int:
    """Print a reply, or write it to `--output`; return the exit status.

    With *as_file*, which `read` sets, a single content block is piped unchanged.
    """
    if reply.error is not None:
        return print_error(reply, reply.error, contract, options.dialect, advice)
    shape = reply.shape or shape_of(reply)
    match reply.content:
        case (Embedded() as only,) if as_file and options.dialect is None:
            body = (only.text or "").encode() if only.blob is None else only.blob
            written = HttpReply(200, body, "application/octet-stream")
        case _:
            written = write(reply, options.dialect or contract.http, shape, contract)
    if options.output is None:
        _print_success(reply, shape, written, options.dialect, out)
        return 0
    saved = [block for block in reply.content if _bytes_of(block) is not None]
    if not saved:
        end = b"\n" if written.media_type.endswith("json") else b""
        _write_file(options.output, written.body + end)
        return 0
    stem, suffix = os.path.splitext(options.output)
    for number, block in enumerate(saved, 1):
        # Several files are numbered: chart.png, chart-2.png.
        path = options.output if number == 1 else f"{stem}-{number}{suffix}"
        data = _bytes_of(block) or b""
        _write_file(path, data)
        mime = getattr(block, "mime", None) or "application/octet-stream"
        write_stderr(printable_line(f"{path}: {mime}, {len(data)} bytes"))
    left = tuple(block for block in reply.content if block not in saved)
    if left or reply.data is not msgspec.UNSET:
        reply = msgspec.structs.replace(reply, content=left)
        written = write(reply, options.dialect or contract.http, shape, contract)
        _print_success(reply, shape, written, options.dialect, out)
    return 0


def print_error(
    reply: Reply[Any],
    error: Error,
    contract: Contract,
    dialect: Dialect | None = None,
    advice: str | None = None,
) -> int:
    """Print text and *advice* for a person, or a line of JSON for a program."""
    if dialect is None and stderr_is_terminal():
        from .readable_reply import error_text

        write_stderr(error_text(error, advice))
        return error.row.exit
    body = write(reply, dialect or contract.http, RESULT, contract).body
    is_rest = dialect is None and contract.http == "rest"
    if is_rest and contract.error_text != "json":
        # A pipe has no HTTP status, which the rest dialect relies on, so add the code. A
        # contract with JSON errors defines all of their members itself.
        members = {**msgspec.json.decode(body), "code": error.code}
        body = msgspec.json.encode(members | ({"hint": error.hint} if error.hint else {}))
    write_stderr(printable_json(body.decode()))
    return error.row.exit


def _print_success(
    reply: Reply[Any], shape: Shape, written: HttpReply, dialect: Dialect | None, out: Stdout
) -> None:
    """Print text on a terminal; print JSON to a pipe, or if a dialect is requested."""
    is_raw = not written.media_type.endswith("json")
    if out.is_terminal and (is_raw or dialect is None):
        from .readable_reply import reply_text

        write_stdout(out, f"{reply_text(reply, shape)}\n".encode())
    elif is_raw:
        write_stdout(out, written.body)
    else:
        write_json(out, written.body)


def _bytes_of(block: Block) -> bytes | None:
    match block:
        case Image(url=None) | Audio(url=None):
            return block.data
        case Embedded():
            return block.blob
    return None


def _write_file(path: str, data: bytes) -> None:
    try:
        with open(path, "wb") as file:
            file.write(data)
    except OSError as exc:
        raise CannotWrite(f"cannot write {path}: {exc.strerror}") from None
