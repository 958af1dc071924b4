"""The arguments of a call as they are given in a shell: name=value, files, stdin and JSON."""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from typing import Any

import msgspec

from ..calls.failures import invalid_arguments
from ..errors import INVALID_JSON, AnswerbackError
from ..reply import Reply, failure
from ..tools.tool import Tool
from ..types.json_text import load
from ..types.problems import InvalidArguments, InvalidJson


class CannotRead(AnswerbackError):
    """An argument, or the file it names, cannot be read."""

    code = "CANNOT_READ"


def arguments_for(
    tool: Tool | None, words: Sequence[str], whole: str | None, stdin: int
) -> bytes | Reply[Any]:
    """The argument object as JSON, or the reply to words that do not fit the tool.

    *whole* is the object itself; a word changes one argument in it. `-` stands for all that the
    file descriptor *stdin* gives.
    """
    if tool is None:
        return b"{}"
    pairs = [_pair(word, tool) for word in words]
    if [whole, *(text for _, text in pairs)].count("-") > 1:
        raise CannotRead("stdin can be read for one argument only")
    # Windows begins files of text with a mark that is no part of the text.
    given = b"{}" if whole is None else _content(whole, stdin).removeprefix(codecs.BOM_UTF8)
    if whole is not None and (broken := _broken(given)):
        name = f"--json {whole}" if whole == "-" or whole.startswith("@") else "--json"
        return failure(f"{name} is not JSON: {broken}", code=INVALID_JSON)
    if not pairs:
        return given
    try:
        named = tool.signature.from_strings([(name, _value(text, stdin)) for name, text in pairs])
    except InvalidArguments as exc:
        return Reply(error=invalid_arguments(exc))
    return _merged(given, named)


def _merged(given: bytes, named: dict[str, Any]) -> bytes:
    try:
        members = msgspec.json.decode(given, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        # It is no object, which is for the pipeline to say.
        return given
    return msgspec.json.encode(members | named)


def _broken(given: bytes) -> str | None:
    """What is wrong with text that should be JSON, and where."""
    try:
        load(given)
    except InvalidJson as exc:
        from .broken import where

        return where(given) or str(exc)
    except msgspec.ValidationError:
        # A number too large for us is JSON all the same.
        return None
    return None


def _pair(word: str, tool: Tool) -> tuple[str, str]:
    if not _is_text(word):
        raise CannotRead(f"{word!r} is not UTF-8; give such content as name=@file")
    name, equals, text = word.partition("=")
    if not equals or not name:
        first = next((each.name for each in tool.parameters), None)
        advice = f"write {first}={text or word}" if first else f"{tool.name} takes no arguments"
        raise CannotRead(f"{word!r} is not name=value; {advice}")
    return name, text


def _is_text(word: str) -> bool:
    """Whether it was UTF-8; a file may have any name."""
    if "=@" in word:
        return True
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def _value(text: str, stdin: int) -> str | bytes:
    """The text itself, or what it stands for."""
    if text.startswith("@@"):
        return text[1:]
    return _content(text, stdin) if text == "-" or text.startswith("@") else text


def _content(text: str, stdin: int) -> bytes:
    """What a file or stdin holds; any other text is its own content."""
    if text == "-":
        return _read(stdin, "stdin")
    if text.startswith("@"):
        return _read(text[1:], text[1:])
    return os.fsencode(text)


def _read(source: str | int, name: str) -> bytes:
    try:
        with open(source, "rb", closefd=isinstance(source, str)) as file:
            return file.read()
    except OSError as exc:
        raise CannotRead(f"cannot read {name}: {exc.strerror}") from None
