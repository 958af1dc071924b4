"""Reads docstrings in the Google, NumPy and Sphinx styles; knows nothing of signatures.

Only what is surely a section is taken out of the prose: a doubtful line stays where it is.
"""

import re
from collections.abc import Callable

import msgspec

HEADINGS = {
    "arguments": (
        "args",
        "arguments",
        "keyword args",
        "keyword arguments",
        "other parameters",
        "parameters",
        "params",
    ),
    "returns": ("return", "returns", "yield", "yields"),
    "raises": ("exceptions", "raise", "raises", "throws"),
    # For people who read the source, not for those who call the tool.
    "dropped": (
        "attributes",
        "example",
        "examples",
        "methods",
        "receives",
        "references",
        "see also",
        "todo",
        "warns",
    ),
}
FIELDS = {
    "arguments": ("arg", "argument", "key", "keyword", "kwarg", "param", "parameter"),
    "returns": ("return", "returns", "yield", "yields"),
    "raises": ("except", "exception", "raise", "raises"),
    "dropped": ("meta", "rtype", "type"),
}
HEADING_KINDS = {name: kind for kind, names in HEADINGS.items() for name in names}
FIELD_KINDS = {name: kind for kind, names in FIELDS.items() for name in names}

NAME = r"[\\*`]*\w[\w.]*`*"
NAMES = re.compile(rf"{NAME}(?:\s*,\s*{NAME})*")

Entry = tuple[list[str], str]
Reader = Callable[[str], Entry | None]


class Docstring(msgspec.Struct, frozen=True):
    """What a docstring says, taken apart; `description` is all its prose, summary included."""

    summary: str = ""
    description: str = ""
    arguments: dict[str, str] = msgspec.field(default_factory=dict)
    returns: str = ""
    raises: dict[str, str] = msgspec.field(default_factory=dict)


class Section(msgspec.Struct, frozen=True):
    """A part that is not prose; `end` is the first line after it."""

    kind: str
    end: int
    entries: dict[str, str] = msgspec.field(default_factory=dict)
    text: str = ""


def parse(doc: str | None) -> Docstring:
    """Take a docstring apart; whatever it holds, this does not raise."""
    lines = _clean(doc or "")
    prose: list[str] = []
    sections: list[Section] = []
    at = 0
    while at < len(lines):
        section = _sphinx(lines, at) or _numpy(lines, at) or _google(lines, at)
        if section is None:
            prose.append(lines[at])
            at += 1
        else:
            # What stands after the section is a paragraph of its own.
            prose.append("")
            sections.append(section)
            at = section.end
    paragraphs = _paragraphs(prose)
    return Docstring(
        summary=_flow(paragraphs[:1]),
        description="\n\n".join(paragraphs),
        arguments=_entries_of("arguments", sections),
        returns=_flow([section.text for section in sections if section.kind == "returns"]),
        raises=_entries_of("raises", sections),
    )


def _entries_of(kind: str, sections: list[Section]) -> dict[str, str]:
    chosen = [section.entries for section in sections if section.kind == kind]
    return {name: text for entries in chosen for name, text in entries.items()}


def _clean(doc: str) -> list[str]:
    first, *rest = [line.rstrip() for line in doc.expandtabs().splitlines()] or [""]
    margin = min((_indent(line) for line in rest if line), default=0)
    return [first.lstrip(), *(line[margin:] for line in rest)]


def _paragraphs(lines: list[str]) -> list[str]:
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line:
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return ["\n".join(paragraph) for paragraph in paragraphs if paragraph]


def _sphinx(lines: list[str], at: int) -> Section | None:
    field = _field(lines[at])
    if field is None:
        return None
    kind, subject, text = field
    end = at + 1
    while end < len(lines) and _continues(lines, end, _indent(lines[at])):
        end += 1
    text = _flow([text, *lines[at + 1 : end]])
    return Section(kind, end, dict.fromkeys(_names(subject), text), text)


def _field(line: str) -> tuple[str, str, str] | None:
    """Split `:param int x: text` into its kind, `x` and the text."""
    head, colon, text = line.strip()[1:].partition(":")
    name, _, subject = head.strip().partition(" ")
    if not line.lstrip().startswith(":") or not colon or name not in FIELD_KINDS:
        return None
    kind = FIELD_KINDS[name]
    if kind == "arguments":
        subject = subject.rpartition(" ")[2]
    return kind, subject, text


def _continues(lines: list[str], at: int, margin: int) -> bool:
    """Tell whether a line belongs to the field above it, as authors write and Sphinx forgives."""
    line = lines[at]
    if not line or _indent(line) > margin:
        return True
    return lines[at - 1] != "" and _field(line) is None


def _numpy(lines: list[str], at: int) -> Section | None:
    kind = _heading(lines[at])
    if kind is None or not _is_underlined(lines, at):
        return None
    margin = _indent(lines[at])
    start = end = at + 2
    while end < len(lines) and not _is_underlined(lines, end):
        if kind in ("arguments", "raises") and _is_prose_again(lines, end, margin):
            break
        end += 1
    body = lines[start:end]
    deeper = [line for line in body if _indent(line) > margin]
    return Section(kind, end, _entries(body, _read_numpy), _flow(deeper or body))


def _heading(line: str) -> str | None:
    return HEADING_KINDS.get(line.strip().removesuffix(":").rstrip().lower())


def _is_underlined(lines: list[str], at: int) -> bool:
    line = lines[at + 1].strip() if at + 1 < len(lines) else ""
    return lines[at] != "" and len(line) >= 3 and line.strip(line[0]) == "" and line[0] in "-="


def _is_prose_again(lines: list[str], at: int, margin: int) -> bool:
    line = lines[at]
    if not line or _indent(line) > margin or lines[at - 1]:
        return False
    return _read_numpy(line.strip()) is None


def _read_numpy(line: str) -> Entry | None:
    names = NAMES.match(line)
    if names is None or line[names.end() :].lstrip()[:1] not in ("", ":"):
        return None
    return _names(names[0]), ""


def _google(lines: list[str], at: int) -> Section | None:
    kind = _heading(lines[at]) if lines[at].endswith(":") else None
    if kind is None:
        return None
    end = _google_end(lines, at, kind)
    body = lines[at + 1 : end]
    if not any(body):
        return None
    return Section(kind, end, _entries(body, _read_google), _untyped(_flow(body)))


def _google_end(lines: list[str], at: int, kind: str) -> int:
    margin = _indent(lines[at])
    end = at + 1
    while end < len(lines) and (not lines[end] or _indent(lines[end]) > margin):
        end += 1
    if end == at + 1 and kind in ("arguments", "raises"):
        # Some authors forget to indent; their section ends at the first line of another form.
        while end < len(lines) and _read_google(lines[end].strip()) and not _heading(lines[end]):
            end += 1
    return end


def _read_google(line: str) -> Entry | None:
    names = NAMES.match(line)
    if names is None:
        return None
    rest = _after_type(line[names.end() :].lstrip())
    # No space after the colon: a URL, a time, a ratio.
    if not rest.startswith(":") or rest[1:2].strip():
        return None
    return _names(names[0]), rest[1:]


def _after_type(text: str) -> str:
    """Skip a type in parentheses, which may hold others."""
    if not text.startswith("("):
        return text
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[at + 1 :].lstrip()
    return ""


def _untyped(text: str) -> str:
    """Drop the type from `dict[str, int]: how many of each`."""
    head, _, rest = text.partition(": ")
    outside = head.partition("[")[0] + head.rpartition("]")[2]
    return rest if rest and " " not in outside.replace(" | ", "|") else text


def _entries(lines: list[str], read: Reader) -> dict[str, str]:
    entries: list[tuple[list[str], list[str]]] = []
    margin = next((_indent(line) for line in lines if line), 0)
    for line in filter(None, lines):
        entry = read(line.strip()) if _indent(line) <= margin else None
        if entry:
            entries.append((entry[0], [entry[1]]))
        elif entries:
            entries[-1][1].append(line)
    flowing = [(names, _flow(texts)) for names, texts in entries]
    return {name: text for names, text in flowing for name in names}


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip().strip("\\*`"))]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _flow(lines: list[str]) -> str:
    return " ".join(" ".join(lines).split())
