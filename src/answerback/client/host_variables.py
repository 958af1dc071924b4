"""The variables of hosts' files: `${NAME}`, those of VS Code, and files of variables."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ..core.json_value import Json

_VARIABLE = re.compile(
    r"\$\{(/|(?:input|config|command|workspaceFolder):[^}-][^}]*|(?:env:)?[A-Za-z_]\w*)"
    r"(?::-([^}]*))?\}"
)
_EDITORS = frozenset(
    {
        *("file", "fileBasename", "fileBasenameNoExtension", "fileDirname", "fileDirnameBasename"),
        *("fileExtname", "fileWorkspaceFolder", "relativeFile", "relativeFileDirname"),
        *("lineNumber", "columnNumber", "selectedText", "execPath", "defaultBuildTask"),
    }
)
"""VS Code's variables about an open file, which nobody has open here."""
_PROJECT_FOLDERS = (".vscode", ".cursor")
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"""(["'])(.*?)\1\s*(?:#.*)?""")


class Surroundings(msgspec.Struct, frozen=True):
    """The folders of a host's file, and the values of the host's own variables."""

    workspace: Path
    start: str | None = None
    """Where servers without `cwd` start; None is this process's folder."""
    variables: dict[str, str] = {}

    @classmethod
    def of(cls, config: Mapping[str, Any], file: Path | None) -> Surroundings:
        """Return the surroundings of a host's file, or of a dict in this process's folder."""
        folder = Path.cwd() if file is None else file.absolute().parent
        workspace = folder.parent if folder.name.startswith(".") else folder
        in_project = folder.name in _PROJECT_FOLDERS or (file and file.name == ".mcp.json")
        # Such a file in the home folder is for all projects.
        start = str(workspace) if in_project and workspace != Path.home() else None
        return cls(workspace, start, _values(config, workspace))

    def filled(self, value: Json) -> Any:
        """Replace `${NAME}` in a value; raises LookupError."""
        if isinstance(value, str):
            return _VARIABLE.sub(lambda found: self._variable(found[1], found[2]), value)
        if isinstance(value, Mapping):
            return {key: self.filled(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.filled(each) for each in value]
        return value

    def _variable(self, name: str, default: str | None) -> str:
        """Return a variable's value; the input `api-key` is the environment variable `API_KEY`."""
        default = self.variables.get(name, default)
        kind, colon, rest = name.partition(":")
        variable = rest if kind == "env" and colon else name
        if kind == "input":
            variable = re.sub(r"\W", "_", rest).upper()
        found = os.environ.get(variable, default)
        if found is None and (name in _EDITORS or (colon and kind not in ("env", "input"))):
            raise LookupError(f"uses ${{{name}}}, which only an editor knows; write the value")
        if found is None:
            raise LookupError(f"needs the environment variable {variable}")
        return found

    def path(self, given: str) -> Path:
        """Return a path of the file; a relative one begins in the workspace."""
        return self.workspace / Path(given).expanduser()


def _values(config: Mapping[str, Any], workspace: Path) -> dict[str, str]:
    """Return the values of the hosts' own variables, and the defaults of VS Code's inputs."""
    given = {
        "workspaceFolder": str(workspace),
        "workspaceFolderBasename": workspace.name,
        "userHome": str(Path.home()),
        "cwd": os.getcwd(),
        "pathSeparator": os.sep,
        "/": os.sep,
    }
    inputs = config.get("inputs")
    for each in inputs if isinstance(inputs, list) else ():
        if isinstance(each, Mapping) and each.get("default") is not None:
            given[f"input:{each.get('id')}"] = str(each["default"])
    return given


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables in a file of lines `NAME=VALUE`; raises OSError or ValueError."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(text)
        value = None if assignment is None else _value(assignment[2])
        if assignment is None or value is None:
            raise ValueError(f"line {number} is not NAME=VALUE")
        found[assignment[1]] = value
    return found


def _value(text: str) -> str | None:
    """Return a value without its quotes or comment; None if a quote has no end."""
    if not text.startswith(("'", '"')):
        return re.split(r"(?:^|\s)#", text)[0].rstrip()
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return None
    return quoted[2].replace("\\n", "\n") if quoted[1] == '"' else quoted[2]
