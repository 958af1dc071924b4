"""`port`: does the mechanical part of turning a server of another framework into an App."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..errors import AnswerbackError
from ..types.describe import counted
from .porting.port_files import port_files
from .porting.python_file import PythonFile
from .program import Program, print_text, printable, write_stderr

_SKIPPED = {"__pycache__", "node_modules", "site-packages", "venv", "env", "build", "dist"}
_EPILOG = """\
The diff goes to stdout, and what a person must look at to stderr, with line numbers. Apply it
with --write, or with: answerback port server.py | git apply"""


class CannotPort(AnswerbackError):
    """A file cannot be read as Python, or cannot be written."""

    code = "CANNOT_PORT"


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser("port", "[--write] PATH…", epilog=_EPILOG)
    help = "a file of the server, or a folder: its files are ported together"
    parser.add_argument("paths", nargs="+", metavar="PATH", help=help)
    parser.add_argument("--write", action="store_true", help="change the files")
    options = parser.parse_args(arguments)
    files = [file for path in options.paths for file in _files_in(Path(path))]
    sources = [_read(file) for file in files]
    port_files(sources)
    for source in sources:
        _show(source, write=options.write)
    _print_summary(sources, write=options.write)
    return 0


def _files_in(path: Path) -> Iterator[Path]:
    if path.is_file():
        yield path
        return
    if not path.is_dir():
        raise CannotPort(f"there is no file or folder {str(path)!r}")
    for folder, folders, names in os.walk(path):
        folders[:] = sorted(each for each in folders if not _is_skipped(Path(folder, each)))
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(".py"))


def _is_skipped(folder: Path) -> bool:
    is_environment = (folder / "pyvenv.cfg").exists()
    return folder.name in _SKIPPED or folder.name.startswith(".") or is_environment


def _read(file: Path) -> PythonFile:
    try:
        return PythonFile(file)
    except OSError as exc:
        raise CannotPort(f"cannot read {file}: {exc.strerror}") from None
    except SyntaxError as exc:
        raise CannotPort(f"{file} is not Python: {exc.msg} in line {exc.lineno}") from None
    except ValueError as exc:
        raise CannotPort(f"{file} is not Python: {exc}") from None


def _show(source: PythonFile, *, write: bool) -> None:
    if source.is_changed and write:
        try:
            source.write()
        except OSError as exc:
            raise CannotPort(f"cannot write {source.path}: {exc.strerror}") from None
    elif source.is_changed:
        print_text(printable(source.diff()))
    for note in source.notes:
        # The numbers are those of the file as it is now.
        line = source.line_in_ported(note.line) if write else note.line
        write_stderr(f"{source.path}:{line}: {note.text}")


def _print_summary(sources: Sequence[PythonFile], *, write: bool) -> None:
    changed = [source for source in sources if source.is_changed]
    notes = sum(len(source.notes) for source in sources)
    looked = f", {counted(notes, 'place')} to look at" if notes else ""
    if not changed and not notes:
        places = f" in {counted(len(sources), 'file')}" if len(sources) != 1 else ""
        write_stderr(f"nothing to port{places}: no code of FastMCP or the official SDK")
    elif not changed:
        write_stderr(f"nothing can be changed without you{looked}")
    elif write:
        write_stderr(
            f"{counted(len(changed), 'file')} changed{looked}; run the tests, then: git diff"
        )
    else:
        them = "it" if len(changed) == 1 else "them"
        write_stderr(f"{counted(len(changed), 'file')} to change{looked}; --write changes {them}")
