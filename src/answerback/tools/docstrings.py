"""Parses docstrings in the Google, NumPy and Sphinx styles; knows nothing about signatures.

A line that does not clearly start a section is left in the description.
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
    "raises": ("exceptions", "raise", "raises", "throws"),
    "returns": ("return", "returns"),
    "examples": ("example", "examples"),
    # Sections for readers of the source.
    "dropped": (
        "attributes",
        "methods",
        "receives",
        "references",
        "see also",
        "todo",
        "warns",
        "yield",
        "yields",
    ),
}
FIELDS = {
    "arguments": ("arg", "argument", "key", "keyword", "kwarg", "param", "parameter"),
    "raises": ("except", "exception", "raise", "raises"),
    "returns": ("return", "returns"),
    "dropped": ("meta", "rtype", "type", "yield", "yields"),
}
HEADING_KINDS = {name: kind for kind, names in HEADINGS.items() for name in names}
FIELD_KINDS = {name: kind for kind, names in FIELDS.items() for name in names}

NAME = r"[\\*`]*\w[\w.]*`*"
NAMES = re.compile(rf"{NAME}(?:\s*,\s*{NAME})*")

Entry = tuple[list[str], str]
Reader = Callable[[str], Entry | None]


class Docstring(msgspec.Struct, frozen=True):
    """A docstring's parts; `description` contains all of its prose and examples."""

    description: str = ""
    arguments: dict[str, str] = msgspec.field(default_factory=dict)
    raises: dict[str, str] = msgspec.field(default_factory=dict)
    returns: str = ""
    """The section on the return value, with its heading."""

    @property
    def with_returns(self) -> str:
        """The description and the section on the return value."""
        return "\n\n".join(filter(None, (self.description, self.returns)))


class Section(msgspec.Struct, frozen=True):
    """A docstring's section; `end` is the number of the first line after it."""

    kind: str
    end: int
    entries: dict[str, str]


def parse(doc: str | None) -> Docstring:
    """Split a docstring into its parts; never raise."""
    first, *rest = [line.rstrip() for line in (doc or "").expandtabs().splitlines()] or [""]
    margin = min((_indent(line) for line in rest if line), default=0)
    lines = [first.lstrip(), *(line[margin:] for line in rest)]
    prose: list[str] = []
    returns: list[str] = []
    sections: list[Section] = []
    at = 0
    while at < len(lines):
        section = (
            _sphinx_section(lines, at) or _numpy_section(lines, at) or _google_section(lines, at)
        )
        if section is None:
            prose.append(lines[at])
            at += 1
        else:
            # Prose after the section starts a new paragraph.
            prose.append("")
            if section.kind == "examples":
                prose += [*lines[at : section.end], ""]
            elif section.kind == "returns":
                head, *body = lines[at : section.end]
                if (field := _field(head)) is not None:
                    # `:returns: The sum.` becomes `Returns: The sum.`
                    head = f"Returns: {field[2].strip()}"
                returns += [head, *body, ""]
            sections.append(section)
            at = section.end
    return Docstring(
        description=_paragraphs(prose),
        arguments=_entries_of("arguments", sections),
        raises=_entries_of("raises", sections),
        returns=_paragraphs(returns),
    )


def _entries_of(kind: str, sections: list[Section]) -> dict[str, str]:
    chosen = [section.entries for section in sections if section.kind == kind]
    return {name: text for entries in chosen for name, text in entries.items()}


def _paragraphs(lines: list[str]) -> str:
    """Return the lines with one empty line between paragraphs."""
    paragraphs: list[list[str]] = [[]]
    for line in lines:
        if line:
            paragraphs[-1].append(line)
        elif paragraphs[-1]:
            paragraphs.append([])
    return "\n\n".join("\n".join(paragraph) for paragraph in paragraphs if paragraph)


def _sphinx_section(lines: list[str], at: int) -> Section | None:
    field = _field(lines[at])
    if field is None:
        return None
    kind, subject, text = field
    end = at + 1
    while end < len(lines):
        line = lines[end]
        is_inside = not line or _indent(line) > _indent(lines[at])
        # Like Sphinx, accept a continuation without indentation.
        if not is_inside and (lines[end - 1] == "" or _field(line) is not None):
            break
        end += 1
    text = _entry_text([text, *lines[at + 1 : end]])
    return Section(kind, end, dict.fromkeys(_names(subject), text))


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


def _numpy_section(lines: list[str], at: int) -> Section | None:
    kind = _heading_kind(lines[at])
    if kind is None or not _is_underlined(lines, at):
        return None
    margin = _indent(lines[at])
    has_entries = kind in ("arguments", "raises")
    start = end = at + 2
    while end < len(lines) and not _is_underlined(lines, end):
        line = lines[end]
        begins_paragraph = line and not lines[end - 1] and _indent(line) <= margin
        if has_entries and begins_paragraph and _read_numpy_entry(line.strip()) is None:
            # Back to prose.
            break
        end += 1
    return Section(kind, end, _entries(lines[start:end], _read_numpy_entry))


def _heading_kind(line: str) -> str | None:
    return HEADING_KINDS.get(line.strip().removesuffix(":").rstrip().lower())


def _is_underlined(lines: list[str], at: int) -> bool:
    line = lines[at + 1].strip() if at + 1 < len(lines) else ""
    return lines[at] != "" and len(line) >= 3 and line.strip(line[0]) == "" and line[0] in "-="


def _read_numpy_entry(line: str) -> Entry | None:
    names = NAMES.match(line)
    if names is None or line[names.end() :].lstrip()[:1] not in ("", ":"):
        return None
    return _names(names[0]), ""


def _google_section(lines: list[str], at: int) -> Section | None:
    kind = _heading_kind(lines[at]) if lines[at].endswith(":") else None
    if kind is None:
        return None
    margin = _indent(lines[at])
    end = at + 1
    while end < len(lines) and (not lines[end] or _indent(lines[end]) > margin):
        end += 1
    if end == at + 1 and kind in ("arguments", "raises"):
        # Some authors do not indent sections; these end at the first line that is not an entry.
        while (
            end < len(lines)
            and _read_google_entry(lines[end].strip())
            and not _heading_kind(lines[end])
        ):
            end += 1
    body = lines[at + 1 : end]
    if not any(body):
        return None
    return Section(kind, end, _entries(body, _read_google_entry))


def _read_google_entry(line: str) -> Entry | None:
    names = NAMES.match(line)
    if names is None:
        return None
    rest = _skip_type(line[names.end() :].lstrip())
    # A colon without a space after it belongs to a URL, a time or a ratio.
    if not rest.startswith(":") or rest[1:2].strip():
        return None
    return _names(names[0]), rest[1:]


def _skip_type(text: str) -> str:
    """Skip a type in parentheses, which may be nested."""
    if not text.startswith("("):
        return text
    depth = 0
    for at, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0:
            return text[at + 1 :].lstrip()
    return ""


def _entries(lines: list[str], read: Reader) -> dict[str, str]:
    entries: list[tuple[list[str], list[str]]] = []
    margin = next((_indent(line) for line in lines if line), 0)
    for line in lines:
        entry = read(line.strip()) if line and _indent(line) <= margin else None
        if entry:
            entries.append((entry[0], [entry[1]]))
        elif entries:
            entries[-1][1].append(line)
    texts = [(names, _entry_text(lines)) for names, lines in entries]
    return {name: text for names, text in texts for name in names}


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip().strip("\\*`"))]


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _entry_text(lines: list[str]) -> str:
    """Return an entry's text with its line breaks; the lines after the first are dedented."""
    first, *rest = lines
    margin = min((_indent(line) for line in rest if line), default=0)
    return _paragraphs([first.strip(), *(line[margin:] for line in rest)])
