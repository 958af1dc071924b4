"""`serve --reload`: a change of a file, a syntax error, a failing program, and signals."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.server.processes import BOUND, refuses_connections, wait_until

import answerback

EDITED = """
from answerback import App
from other_file import VALUE

app = App("edited")

@app.tool
def value() -> int:
    return VALUE

if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    (tmp_path / "edited.py").write_text(EDITED)
    (tmp_path / "other_file.py").write_text("VALUE = 1\n")
    return tmp_path / "edited.py"


def read_until(stderr: Any, text: bytes) -> bytes:
    lines = b""
    while text not in lines:
        line = stderr.readline()
        assert line, f"the server ended: {lines!r}"
        lines += line
    return lines


def value_of(server: Any) -> Any:
    return httpx.post(f"{server.url}/functions/value", timeout=BOUND).json()


def test_reload_serves_the_changed_program_on_the_same_port(serve: Any, edited: Path) -> None:
    with serve(edited, "--reload") as server:
        before = value_of(server)
        (edited.parent / "other_file.py").write_text("VALUE = 2\n")
        seen = read_until(server.stderr, b"reloaded")
        after = value_of(server)

    assert (before, after) == ({"result": 1}, {"result": 2})
    assert seen == b"other_file.py changed; reloading\nedited 0.0.0: 1 tool, reloaded\n"


SCRIPT = """\
import sys
from notes.server import app

if __name__ == "__main__":
    sys.exit(app.run())
"""
FACTORY = """\
import sys
from notes.made import make

if __name__ == "__main__":
    sys.exit(make().run())
"""
MADE = """\
from answerback import App
from .server import value

def make() -> App:
    app = App("made")
    app.tool(value)
    return app
"""


@pytest.mark.parametrize(
    ("start", "folder"),
    [
        (["bin/notes", "serve"], "src/notes"),
        (["bin/made", "serve"], "src/notes"),
        (["-m", "notes", "serve"], "src/notes"),
        (["bin/start.py", "serve"], "src/notes"),
        (["src/start.py", "serve"], "src"),
        (["-m", "answerback", "serve", "notes.server:app"], "src/notes"),
        (["-m", "answerback", "serve", "local.server:app"], "here"),
    ],
    ids=["script", "factory", "module", "file elsewhere", "file beside", "target", "local target"],
)
def test_reload_watches_the_package_of_the_app_however_it_is_started(
    tmp_path: Path, start: list[str], folder: str
) -> None:
    server = (
        "from answerback import App\napp = App('notes')\n"
        "@app.tool\ndef value() -> int:\n    return 1\n"
    )
    package = tmp_path / "src" / "notes"
    local = tmp_path / "here" / "local"
    for made in (package, local, tmp_path / "bin"):
        made.mkdir(parents=True)
    for made in (package, local):
        (made / "__init__.py").write_text("")
        (made / "server.py").write_text(server)
    (package / "__main__.py").write_text("from .server import app\napp.run()\n")
    (package / "made.py").write_text(MADE)
    (tmp_path / "bin" / "notes").write_text(SCRIPT)
    (tmp_path / "bin" / "made").write_text(FACTORY)
    (tmp_path / "bin" / "start.py").write_text(SCRIPT)
    (tmp_path / "src" / "start.py").write_text(SCRIPT)
    words = [str(tmp_path / word) if "/" in word else word for word in start]
    sources = [str(tmp_path / "src"), str(Path(answerback.__file__).parent.parent)]

    with subprocess.Popen(
        [sys.executable, *words, "--reload", "--port", "0"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sources)},
        cwd=tmp_path / "here",
        stderr=subprocess.PIPE,
    ) as process:
        try:
            announced = read_until(process.stderr, b"Ctrl-C")
            assert f"watching the Python files in {tmp_path / folder}\n" in announced.decode()
            edited = (local if "local" in start[-1] else package) / "server.py"
            edited.write_text(server.replace("return 1", "return 22"))
            seen = read_until(process.stderr, b"reloaded")
        finally:
            process.terminate()
            process.wait(BOUND)

    assert b"server.py changed; reloading" in seen


def test_every_call_during_a_reload_is_answered(serve: Any, edited: Path) -> None:
    """The program before or the one after answers; a refused connection would raise."""
    with serve(edited, "--reload") as server:
        (edited.parent / "other_file.py").write_text("VALUE = 2\n")
        read_until(server.stderr, b"changed; reloading")
        answers: list[Any] = []

        def is_reloaded() -> bool:
            answers.append(value_of(server))
            return bool(answers[-1] == {"result": 2})

        wait_until(is_reloaded)

    assert set(map(str, answers[:-1])) <= {"{'result': 1}"}
    assert answers[-1] == {"result": 2}


def test_a_syntax_error_is_printed_and_the_program_goes_on_as_it_was(
    serve: Any, edited: Path
) -> None:
    with serve(edited, "--reload") as server:
        (edited.parent / "other_file.py").write_text("VALUE = = 2\n")
        seen = read_until(server.stderr, b"still serving")
        before = value_of(server)
        (edited.parent / "other_file.py").write_text("VALUE = 3\n")
        read_until(server.stderr, b"reloaded")
        after = value_of(server)

    assert b"SyntaxError: invalid syntax" in seen
    assert (before, after) == ({"result": 1}, {"result": 3})


def test_a_program_that_fails_is_started_again_only_after_a_change(
    serve: Any, edited: Path
) -> None:
    with serve(edited, "--reload") as server:
        (edited.parent / "other_file.py").write_text("VALUE = 1 / 0\n")
        seen = read_until(server.stderr, b"waiting for a change")
        (edited.parent / "other_file.py").write_text("VALUE = 4\n")
        rest = read_until(server.stderr, b"reloaded")
        after = value_of(server)

    assert seen.count(b"ZeroDivisionError") == 1
    assert b"ZeroDivisionError" not in rest
    assert after == {"result": 4}


def test_a_target_that_cannot_be_loaded_yet_is_served_once_it_can(edited: Path) -> None:
    (edited.parent / "other_file.py").write_text("VALUE = = 1\n")
    command = [sys.executable, "-m", "answerback", "serve", str(edited), "--reload", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as process:
        try:
            broken = read_until(process.stderr, b"waiting for a change")
            (edited.parent / "other_file.py").write_text("VALUE = 1\n")
            banner = read_until(process.stderr, b"reloaded")
        finally:
            process.terminate()
            process.wait(BOUND)

    assert b"SyntaxError" in broken
    assert b"edited 0.0.0: 1 tool" in banner


@pytest.mark.parametrize(("number", "status"), [(2, 130), (15, 0)], ids=["SIGINT", "SIGTERM"])
def test_a_signal_ends_a_reloading_server_and_its_child(
    serve: Any, edited: Path, number: int, status: int
) -> None:
    with serve(edited, "--reload") as server:
        server.process.send_signal(number)

        assert server.process.wait(BOUND) == status
        assert server.stderr.read() == b""
        assert wait_until(lambda: refuses_connections(server.port))


def test_the_child_ends_when_its_parent_is_killed(serve: Any, edited: Path) -> None:
    with serve(edited, "--reload") as server:
        server.process.kill()
        server.process.wait(BOUND)

        assert wait_until(lambda: refuses_connections(server.port))


def test_a_missing_target_is_an_error_with_reload_too(tmp_path: Path) -> None:
    target = str(tmp_path / "nowhere.py")
    command = [sys.executable, "-m", "answerback", "serve", target, "--reload"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND)

    assert done.returncode == 2
    assert "there is no file" in done.stderr


def test_a_file_that_cannot_be_compiled_is_reported_and_the_program_goes_on_as_it_was(
    serve: Any, edited: Path
) -> None:
    """Python's parser raises MemoryError for it."""
    with serve(edited, "--reload") as server:
        (edited.parent / "new.py").write_text("-" * 100_000 + "1")
        read_until(server.stderr, b"waiting for a change; still serving")
        before = value_of(server)
        (edited.parent / "new.py").write_text("")
        (edited.parent / "other_file.py").write_text("VALUE = 2\n")
        read_until(server.stderr, b"reloaded")
        after = value_of(server)

    assert (before, after) == ({"result": 1}, {"result": 2})


def test_a_pipe_with_the_name_of_a_module_does_not_stop_the_reloading(
    serve: Any, edited: Path
) -> None:
    with serve(edited, "--reload") as server:
        os.mkfifo(edited.parent / "pipe.py")
        (edited.parent / "other_file.py").write_text("VALUE = 2\n")
        read_until(server.stderr, b"reloaded")
        after = value_of(server)

    assert after == {"result": 2}
