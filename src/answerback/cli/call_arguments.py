"""Reads the arguments of `call`: name=value, files, stdin and the JSON of `--json`."""

from __future__ import annotations

import codecs
import os
from collections.abc import Sequence
from itertools import takewhile
from typing import Any

import msgspec

from ..calls.failures import invalid_arguments
from ..core.reply import Reply, failure
from ..error_codes import INVALID_JSON
from ..errors import AnswerbackError
from ..tools.tool import Tool
from ..types.json_text import load
from ..types.problems import InvalidArguments, InvalidJson

_SHOWN_BESIDE_ERROR = 30


class UnreadableArgument(AnswerbackError):
    """An argument is not `name=value` in UTF-8, or its file or stdin cannot be read."""

    code = "CANNOT_READ"


def read_arguments(
    tool: Tool | None, words: Sequence[str], json_option: str | None, stdin: int
) -> bytes | Reply[Any]:
    """Return the argument object as JSON, or the error reply to arguments that the tool lacks.

    *json_option* is the whole object; each word `name=value` replaces one argument in it. A value
    `-` is read from the file descriptor *stdin*.
    """
    if tool is None:
        return b"{}"
    pairs = [_split_word(words, place, tool) for place in range(len(words))]
    if [json_option, *(text for _, text in pairs)].count("-") > 1:
        raise UnreadableArgument("stdin can be read for one argument only")
    whole = b"{}"
    if json_option is not None:
        # Windows puts a byte order mark at the start of text files.
        whole = read_content(json_option, stdin).removeprefix(codecs.BOM_UTF8)
        if error := _json_error(whole):
            from_file = json_option == "-" or json_option.startswith("@")
            source = f"--json {json_option}" if from_file else "--json"
            return failure(f"{source} is not JSON: {error}", code=INVALID_JSON)
    if not pairs:
        return whole
    try:
        values = [(name, read_value(text, stdin)) for name, text in pairs]
        named = tool.from_strings(values)
    except InvalidArguments as exc:
        return Reply(error=invalid_arguments(exc))
    return _merge(whole, named)


def _merge(whole: bytes, named: dict[str, Any]) -> bytes:
    try:
        members = msgspec.json.decode(whole, type=dict[str, msgspec.Raw])
    except msgspec.DecodeError:
        # JSON that is not an object: the pipeline refuses it as it does on every wire.
        return whole
    return msgspec.json.encode(members | named)


def _split_word(words: Sequence[str], place: int, tool: Tool) -> tuple[str, str]:
    """Return the name and the value of the word at *place*."""
    word = words[place]
    if not _is_utf8(word):
        raise UnreadableArgument(f"{word!r} is not UTF-8; give such content as name=@file")
    name, equals, text = word.partition("=")
    if not equals or not name:
        advice = _naming_advice(words, place, tool)
        raise UnreadableArgument(f"{word!r} is not name=value; {advice}")
    return name, text


def _naming_advice(words: Sequence[str], place: int, tool: Tool) -> str:
    """Say what to write instead of the word at *place*, which is not name=value."""
    word, names = words[place], tool.argument_names
    later = list(takewhile(lambda each: "=" not in each, words[place + 1 :]))
    if word in names:
        return f"write {word}={in_quotes(later[0]) if later else 'VALUE'}"
    value = in_quotes(word.removeprefix("="))
    is_free = tool.signature.whole is not None
    given = [each.partition("=")[0] for each in words[:place]]
    unused = [each for each in names if each not in given] or (["NAME"] if is_free else [])
    if given:
        # A shell splits text=Buy two into two words.
        last_text = words[place - 1].partition("=")[2]
        whole = in_quotes(" ".join([last_text, word, *later]))
        quoted = f"{given[-1]}={whole} if it belongs to {given[-1]}"
        return f"write {quoted}" + (f", or {unused[0]}={value}" if unused else "")
    return f"write {unused[0]}={value}" if unused else f"{tool.name} takes no arguments"


def in_quotes(*words: str) -> str:
    """Return the words as they are typed in a shell, in quotes where they need them."""
    import shlex

    return shlex.join(words)


def _is_utf8(word: str) -> bool:
    """Return whether the word is UTF-8; `name=@file` always passes, as file names are bytes."""
    if "=@" in word:
        return True
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_value(text: str, stdin: int) -> str | bytes:
    """Return the value itself, or the content of the file or stdin that it names."""
    if text.startswith("@@"):
        return text[1:]
    return read_content(text, stdin) if text == "-" or text.startswith("@") else text


def read_content(text: str, stdin: int) -> bytes:
    """Return the bytes of stdin for `-`, of a file for `@file`, else of the text itself."""
    if text == "-":
        return _read_bytes(stdin, "stdin")
    if text.startswith("@"):
        return _read_bytes(text[1:], text[1:])
    return os.fsencode(text)


def _read_bytes(source: str | int, name: str) -> bytes:
    try:
        with open(source, "rb", closefd=isinstance(source, str)) as file:
            return file.read()
    except OSError as exc:
        raise UnreadableArgument(f"cannot read {name}: {exc.strerror}") from None


def _json_error(text: bytes) -> str | None:
    """Return a JSON syntax error's reason and position; None if the text is JSON."""
    try:
        load(text)
    except InvalidJson as exc:
        return _syntax_error(text) or str(exc)
    except msgspec.ValidationError:
        # A number that is too large for the decoder is still JSON.
        return None
    return None


def _syntax_error(text: bytes) -> str | None:
    """Return the error from Python's own parser, which knows the position; None without one."""
    # Imported here: only an error needs it, and every call would pay for it.
    import json

    try:
        json.loads(text)
    except json.JSONDecodeError as exc:
        reason = exc.msg[:1].lower() + exc.msg[1:]
        line = exc.doc.splitlines()[exc.lineno - 1 : exc.lineno] or [""]
        marked = _with_caret(line[0], exc.colno - 1)
        return f"{reason} at line {exc.lineno}, column {exc.colno}\n{marked}"
    except (ValueError, RecursionError):
        # The text is not UTF-8, or is nested too deeply.
        return None
    return None


def _with_caret(line: str, column: int) -> str:
    """Return the line, cut to the characters around the column, with a caret below it."""
    start = max(column - _SHOWN_BESIDE_ERROR, 0)
    end = column + _SHOWN_BESIDE_ERROR
    head, tail = "…" if start else "", "…" if end < len(line) else ""
    # A tab may be several columns wide, and the caret would be misplaced.
    shown = line[start:end].replace("\t", " ")
    return f"{head}{shown}{tail}\n{' ' * (len(head) + column - start)}^"
