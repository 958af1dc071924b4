"""The files of the project that `answerback new` writes.

NAME stands for the name of the project and MODULE for the name of its package.
"""

from __future__ import annotations

_PROJECT = """\
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "NAME"
version = "0.1.0"
description = "Tools for language models, services and people"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["answerback"]

[project.optional-dependencies]
serve = ["answerback[serve]"]

[project.scripts]
NAME = "MODULE:app.run"

[dependency-groups]
dev = ["pytest"]

[tool.hatch.build.targets.wheel]
packages = ["src/MODULE"]

[tool.pytest.ini_options]
pythonpath = ["src"]
testpaths = ["tests"]
"""

_PACKAGE = '''\
"""The tools of NAME."""

from .server import app

__all__ = ["app"]
'''

_MAIN = '''\
"""`python -m MODULE` does the same as `NAME`."""

from . import app

if __name__ == "__main__":
    app.run()
'''

_SERVER = '''\
"""The server: each function under `@app.tool` is a tool."""

from dataclasses import dataclass
from typing import Annotated

from answerback import App, InvalidInput

app = App("NAME", version="0.1.0")


@dataclass
class Count:
    """The size of a text."""

    words: int
    characters: int


@app.tool
def greet(name: str) -> str:
    """Greet somebody by name."""
    return f"Hello, {name}!"


@app.tool
def count(text: Annotated[str, "The text to measure."]) -> Count:
    """Count the words and the characters of a text."""
    if not text.strip():
        raise InvalidInput("the text is empty", hint="give at least one word")
    return Count(len(text.split()), len(text))
'''

_TESTS = '''\
"""The tests call the tools as a client does: arguments and results are checked."""

import asyncio

from MODULE import app


def call(tool, /, **arguments):
    return asyncio.run(app.call(tool, **arguments))


def test_greet_names_the_person():
    reply = call("greet", name="Ada")

    assert reply.data == "Hello, Ada!"


def test_count_counts_words_and_characters():
    reply = call("count", text="one two")

    assert (reply.data.words, reply.data.characters) == (2, 7)


def test_an_empty_text_is_refused_with_a_hint():
    reply = call("count", text=" ")

    assert reply.error.code == "INVALID_INPUT"
    assert reply.error.hint == "give at least one word"


def test_an_argument_of_a_wrong_type_is_refused():
    reply = call("greet", name=["Ada"])

    assert reply.error.code == "INVALID_ARGUMENTS"
'''

_README = """\
# NAME

Tools for language models, services and people, served by
[Answerback](https://pypi.org/project/answerback/).

```console
$ python -m venv .venv
$ . .venv/bin/activate
$ pip install -e '.[serve]' pytest
$ python -m pytest
```

| command | does |
|---|---|
| `NAME list` | lists the tools |
| `NAME call greet name=Ada` | calls a tool |
| `NAME serve --reload` | serves REST and MCP over HTTP, and starts again after each change |
| `NAME mcp` | serves MCP over stdin and stdout |
| `NAME install claude` | adds the server to Claude Desktop |

The tools are the functions in `src/MODULE/server.py`.
"""

_IGNORED = """\
.venv/
__pycache__/
*.egg-info/
.pytest_cache/
dist/
build/
"""

_NEXT = """\
NAME/ has a server with two tools, and their tests. Next:

  cd NAME
  python -m venv .venv && . .venv/bin/activate
  pip install -e '.[serve]' pytest
  python -m pytest
  NAME call greet name=Ada
  NAME serve --reload
  NAME install claude

The tools are in NAME/src/MODULE/server.py.
"""

_FILES = {
    "pyproject.toml": _PROJECT,
    "README.md": _README,
    ".gitignore": _IGNORED,
    "src/MODULE/__init__.py": _PACKAGE,
    "src/MODULE/__main__.py": _MAIN,
    "src/MODULE/server.py": _SERVER,
    "tests/test_server.py": _TESTS,
}


def project_files(name: str) -> dict[str, str]:
    """The texts of the project's files by their paths below its folder."""
    return {_named(path, name): _named(text, name) for path, text in _FILES.items()}


def next_steps(name: str) -> str:
    return _named(_NEXT, name)


def module_name(name: str) -> str:
    return name.replace("-", "_").lower()


def _named(text: str, name: str) -> str:
    return text.replace("MODULE", module_name(name)).replace("NAME", name)
