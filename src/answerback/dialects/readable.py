"""Renders JSON data as human-readable text; knows nothing about tools, replies or wires.

A value has a head, shown next to its label, and a body, the lines below. Bodies are
generators, and every list, object and string is truncated, so huge data costs little.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any
from unicodedata import category, east_asian_width

from .reply_text import is_unencoded

MAX_LINES = 200
MAX_ITEMS = 50
MAX_MEMBERS = 100
MAX_DEPTH = 6
MAX_COLUMNS = 8
MAX_BLOCK_LINES = 40

LABEL_WIDTH = 60
CELL_WIDTH = 60
TABLE_WIDTH = 120
INLINE_WIDTH = 80
LINE_WIDTH = 500

# The members that identify a record, best first: for the record that is the subject of the
# text, and for a record that is the value of a label.
SUBJECT_KEYS = ("name", "title", "id", "current")
VALUE_KEYS = ("current", "name", "title", "id")

INITIALISMS = {
    word.lower(): word
    for line in (
        "API APIs CLI CPU CPUs CSS CSV DNS GB GPU GPUs HTML HTTP HTTPS ID IDs IP IPs JSON KB",
        "MB OS PDF RAM SDK SHA SKU SQL SSH SSL TCP TLS TTL UDP UI URI URIs URL URLs UTC UUID",
        "UUIDs VM VMs XML",
    )
    for word in line.split()
}
SINGULARS = {
    "analyses": "analysis",
    "caches": "cache",
    "children": "child",
    "cookies": "cookie",
    "movies": "movie",
    "people": "person",
    "series": "series",
}
SINGULAR_RULES = (
    (re.compile(r"ies$"), "y"),
    (re.compile(r"(ss|x|ch|sh|[^aeo]us)es$"), r"\1"),
    (re.compile(r"s$"), ""),
)

# The second alternative keeps an initialism and its plural s together: "user IDs", not
# "user I Ds".
CAMEL_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z](?!s(?![a-z]))[a-z])")
# Control characters act on a terminal, bidi marks reorder a line, and surrogates cannot be
# encoded as UTF-8.
UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_UNSAFE_IN_TEXT = re.compile(r"(?![\n\t])" + UNSAFE.pattern)


def render(data: Any, *, is_part: bool = False) -> str:
    """Return JSON data as human-readable text; a string is returned as is.

    With *is_part*, the data is only part of what was found, so the text omits "Found 5 users".
    """
    if isinstance(data, str):
        return _UNSAFE_IN_TEXT.sub(_escape, data.replace("\r\n", "\n"))
    text = "\n".join(_capped(_lines(data, "Showing" if is_part else "Found")))
    # A list of one string would look like a printed object if the string were "[object Object]".
    return f"- {text}" if is_unencoded(text) else text


def render_line(text: str) -> str:
    """Return the text on one line, with line breaks escaped too."""
    return UNSAFE.sub(_escape, text)


def escape_json(text: str) -> str:
    """Return the JSON with the characters that a terminal would act on escaped."""
    return _UNSAFE_IN_TEXT.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def _lines(data: Any, verb: str) -> Iterator[str]:
    match data:
        case dict():
            if not data:
                yield "Done"
            elif len(data) == 1:
                yield from _subject(*next(iter(data.items())), verb)
            else:
                tables = {key: value for key, value in data.items() if _are_records(value)}
                others = {key: value for key, value in data.items() if key not in tables}
                sections = [_section(key, value, verb) for key, value in tables.items()]
                if others:
                    sections.insert(0, _members(others, 1))
                for number, section in enumerate(sections):
                    if number:
                        yield ""
                    yield from section
        case []:
            yield "None found"
        case list() if _are_records(data):
            yield from (f"{verb} {_count(data)}", "")
            yield from _rows(data, 1)
        case list():
            joined = _joined_scalars(data)
            yield from (joined,) if joined else _items(data, 1)
        case _:
            yield _scalar(data)


def _subject(key: str, value: Any, verb: str) -> Iterator[str]:
    """Yield the lines for an object's only member, the subject of the whole text."""
    if _are_records(value) or (value == [] and _singular(_noun(key))):
        yield from _section(key, value, verb)
    elif isinstance(value, dict) and (name := _identifying_key(value, SUBJECT_KEYS)):
        yield f"{_label(key)}: {_scalar(value[name])}"
        yield from _members(_without_key(value, name), 1)
    else:
        yield from _field(key, value, 1)


def _section(key: str, records: list[Any], verb: str) -> Iterator[str]:
    plural = _noun(key)
    singular = _singular(plural)
    if singular:
        yield f"{verb} {len(records)} {singular if len(records) == 1 else plural}"
    else:
        yield f"{_label(key)}: {_count(records)}"
    if records:
        yield ""
        yield from _rows(records, 1)


def _head_and_body(value: Any, depth: int) -> tuple[str, Iterable[str]]:
    match value:
        case str():
            text = value.replace("\r\n", "\n").strip("\n")
            is_block = "\n" in text and not text.isspace()
            return ("", _text_lines(text)) if is_block else (_scalar(text), ())
        case dict() | list() if value and depth > MAX_DEPTH:
            return _shorten(_one_line(value), LINE_WIDTH), ()
        case dict() if value:
            name = _identifying_key(value, VALUE_KEYS)
            head = _scalar(value[name]) if name else ""
            return head, _members(_without_key(value, name), depth + 1)
        case list() if value:
            joined = _joined_scalars(value)
            return (joined, ()) if joined else (_count(value), _rows(value, depth + 1))
        case _:
            return _scalar(value), ()


def _field(key: str, value: Any, depth: int) -> Iterator[str]:
    head, body = _head_and_body(value, depth)
    yield f"{_label(key)}: {head}".rstrip()
    yield from _indented(body)


def _members(record: dict[str, Any], depth: int) -> Iterator[str]:
    for key, value in islice(record.items(), MAX_MEMBERS):
        yield from _field(key, value, depth)
    yield from _omitted(len(record), MAX_MEMBERS)


def _rows(values: list[Any], depth: int) -> Iterator[str]:
    columns: list[str] = []
    if _are_records(values):
        columns = list(dict.fromkeys(key for record in values[:MAX_ITEMS] for key in record))
    if 0 < len(columns) <= MAX_COLUMNS:
        yield from _table(values[:MAX_ITEMS], columns)
        yield from _omitted(len(values), MAX_ITEMS)
    else:
        yield from _items(values, depth)


def _items(values: list[Any], depth: int) -> Iterator[str]:
    for value in values[:MAX_ITEMS]:
        head, body = _head_and_body(value, depth)
        lines = chain((head,) if head else (), body)
        yield f"- {next(iter(lines), '')}"
        yield from _indented(lines)
    yield from _omitted(len(values), MAX_ITEMS)


def _omitted(total: int, shown: int) -> Iterator[str]:
    if total > shown:
        yield f"… and {total - shown} more"


def _joined_scalars(values: list[Any]) -> str:
    """Return scalars on one line, or "" if there are too many or they could be misread."""
    if len(values) > INLINE_WIDTH or not all(map(_can_be_joined, values)):
        return ""
    text = ", ".join(map(_scalar, values))
    return text if _width(text) <= INLINE_WIDTH else ""


def _can_be_joined(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= INLINE_WIDTH and "," not in value and "\n" not in value
    return not isinstance(value, dict | list)


def _text_lines(text: str) -> Iterator[str]:
    lines = text.split("\n")
    for line in lines[:MAX_BLOCK_LINES]:
        start = line[: 4 * LINE_WIDTH].expandtabs(4)
        yield _shorten(render_line(start), LINE_WIDTH)
    yield from _omitted(len(lines), MAX_BLOCK_LINES)


def _are_records(value: Any) -> bool:
    return isinstance(value, list) and value != [] and all(isinstance(v, dict) for v in value)


def _table(records: list[dict[str, Any]], columns: list[str]) -> Iterator[str]:
    grid = [[_shorten(_label(key), CELL_WIDTH) for key in columns]]
    grid += [[_cell(record, key) for key in columns] for record in records]
    widths = [max(map(_width, column)) for column in zip(*grid, strict=True)]
    # Narrow the widest columns until the table fits.
    while sum(widths) + 2 * (len(widths) - 1) > TABLE_WIDTH:
        widths[widths.index(max(widths))] -= 1
    numeric = [_is_numeric(records, key) for key in columns]
    for number, row in enumerate(grid):
        cells = []
        for text, width, is_right in zip(row, widths, numeric, strict=True):
            shown = _shorten(text, width)
            space = " " * (width - _width(shown))
            cells.append(space + shown if is_right else shown + space)
        yield "  ".join(cells)
        if number == 0:
            yield "-" * (sum(widths) + 2 * (len(widths) - 1))


def _cell(record: dict[str, Any], key: str) -> str:
    match record.get(key, ""):
        case "":
            text = ""
        case value if value is None or value in ([], {}):
            text = "—"
        case dict() as value if name := _identifying_key(value, VALUE_KEYS):
            text = _scalar(value[name])
        case dict() | list() as value:
            text = _items_on_one_line(value, 2)
        case value:
            text = _scalar(value)
    return _shorten(text, CELL_WIDTH)


def _is_numeric(records: list[dict[str, Any]], key: str) -> bool:
    kinds = {type(record[key]) for record in records if record.get(key) is not None}
    return bool(kinds) and kinds <= {int, float}


def _one_line(value: Any, levels: int = 3) -> str:
    """Return *value* on one line, like JSON without quotes."""
    if isinstance(value, dict):
        name = _identifying_key(value, VALUE_KEYS)
        return _scalar(value[name]) if name else "{" + _items_on_one_line(value, levels) + "}"
    if isinstance(value, list):
        return "[" + _items_on_one_line(value, levels) + "]"
    return _scalar(value)


def _items_on_one_line(value: dict[str, Any] | list[Any], levels: int) -> str:
    if value and not levels:
        return "…"
    if isinstance(value, dict):
        pairs = value.items()
        return _join_until_full(
            f"{_scalar(key)}: {_one_line(item, levels - 1)}" for key, item in pairs
        )
    return _join_until_full(_one_line(item, levels - 1) for item in value)


def _join_until_full(texts: Iterator[str]) -> str:
    shown, room = [], CELL_WIDTH
    for text in texts:
        if room < 0:
            shown.append("…")
            break
        shown.append(text)
        room -= len(text) + 2
    return ", ".join(shown)


def _scalar(value: Any) -> str:
    """Return a scalar, or an empty object or list, on one line."""
    match value:
        case None | dict() | list():
            return "none"
        case bool():
            return "yes" if value else "no"
        case int():
            # Python refuses to convert integers with more than 4300 digits to strings.
            bits = value.bit_length()
            return str(value) if bits < 1000 else f"an integer of {bits} bits"
        case float():
            if value.is_integer() and abs(value) < 1e15:
                return str(int(value))
            # 12 digits show 0.1 + 0.2 as 0.3; large numbers, often timestamps, need more digits.
            return f"{value:.12g}" if abs(value) < 1e6 else f"{value:.15g}"
        case _:
            text = " ".join(str(value).split())
            # Combining marks have no width, so more characters than the width may fit.
            return _shorten(render_line(text[: 4 * LINE_WIDTH]), LINE_WIDTH) or "(empty)"


def _identifying_key(record: dict[str, Any], keys: tuple[str, ...]) -> str:
    for key in keys:
        value = record.get(key)
        if value not in (None, "") and not isinstance(value, dict | list):
            return key
    return ""


def _without_key(record: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in record.items() if name != key} if key else record


def _label(key: str) -> str:
    noun = _noun(key)
    return noun[0].upper() + noun[1:] if noun else _shorten(_scalar(key), LABEL_WIDTH)


def _noun(key: str) -> str:
    """Split an identifier into words; return "" if *key* is not an identifier."""
    if not key.isidentifier() or len(key) > LABEL_WIDTH:
        return ""
    words = [word for part in key.split("_") for word in CAMEL_HUMP.split(part) if word]
    all_capitals = key.isupper() and len(words) > 1
    return " ".join(
        INITIALISMS.get(word.lower())
        or (word if word.isupper() and not all_capitals else word.lower())
        for word in words
    )


def _singular(plural: str) -> str:
    """Return the singular of *plural*, or "" if it is not a plural."""
    start, space, last = plural.rpartition(" ")
    if last in SINGULARS:
        return start + space + SINGULARS[last]
    if not last.endswith("s") or last.endswith(("ss", "us", "is")) or len(last) < 3:
        return ""
    pattern, ending = next(rule for rule in SINGULAR_RULES if rule[0].search(last))
    return start + space + pattern.sub(ending, last)


def _count(values: list[Any]) -> str:
    return "1 item" if len(values) == 1 else f"{len(values)} items"


def _escape(match: re.Match[str]) -> str:
    return match[0].encode("unicode_escape").decode()


def _char_width(char: str) -> int:
    if category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(char) in "WF" else 1


def _width(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_char_width, text))


def _shorten(text: str, limit: int) -> str:
    if len(text) <= 4 * limit and _width(text) <= limit:
        return text
    end, room = 0, limit - 1
    for char in text[: 4 * limit]:
        room -= _char_width(char)
        if room < 0:
            break
        end += 1
    return text[:end].rstrip() + "…"


def _indented(lines: Iterable[str]) -> Iterator[str]:
    return (f"  {line}" for line in lines)


def _capped(lines: Iterator[str]) -> Iterator[str]:
    for number, line in enumerate(lines):
        if number == MAX_LINES:
            yield "… more lines not shown"
            return
        yield line.rstrip()
