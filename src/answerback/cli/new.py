"""`new`: creates a small project with a server, its tests and an entry point."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from keyword import iskeyword
from pathlib import Path

from ..errors import AnswerbackError
from .program import Program, print_text

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*")
_TAKEN = {"answerback", "test", "tests", "src"}
_TEMPLATES = Path(__file__).with_name("new_project")
"""A project's files; NAME stands for its name and MODULE for its package's name."""
_FILES = (
    *("pyproject.toml", "README.md", ".gitignore", "tests/test_server.py"),
    *("src/MODULE/__init__.py", "src/MODULE/__main__.py", "src/MODULE/server.py"),
)


class CannotCreate(AnswerbackError):
    """The project cannot have this name, or its folder is not empty."""

    code = "CANNOT_CREATE"


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser("new", "NAME")
    parser.add_argument("name", metavar="NAME", help="the name of the project and its folder")
    name: str = parser.parse_args(arguments).name
    if len(name) > 64 or not _NAME.fullmatch(name):
        raise CannotCreate(
            f"{name!r} cannot be the name of a project; use letters, digits and single hyphens, "
            "such as my-notes"
        )
    module = _named("MODULE", name)
    if module in _TAKEN or module in sys.stdlib_module_names or iskeyword(module):
        raise CannotCreate(f"{name!r} needs a module named {module!r}, but that name is taken")
    folder = Path(name)
    is_empty = folder.is_dir() and not os.listdir(folder)
    if not is_empty and (folder.exists() or folder.is_symlink()):
        kind = "is not empty" if folder.is_dir() else "is a file"
        raise CannotCreate(f"{str(folder)!r} {kind}; choose another name, or remove it")
    try:
        for path in _FILES:
            file = folder / _named(path, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(_template(path, name), encoding="utf-8", newline="\n")
    except OSError as exc:
        raise CannotCreate(f"cannot write {exc.filename}: {exc.strerror}") from None
    print_text(_template("next_steps", name))
    return 0


def _template(path: str, name: str) -> str:
    text = (_TEMPLATES / f"{path.lstrip('.')}.txt").read_text(encoding="utf-8")
    return _named(text, name)


def _named(text: str, name: str) -> str:
    return text.replace("MODULE", name.replace("-", "_").lower()).replace("NAME", name)
