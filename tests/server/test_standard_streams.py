"""`wires.standard_streams`: only the wire reads stdin and writes stdout."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

TAKE = "from answerback.server.process import take_stdout; out = take_stdout(); "


def run(code: str, shell: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run *code* in Python; *shell* has redirections, such as `>&-`, which closes stdout."""
    command = f'exec "$0" -c "$1" {shell}'
    return subprocess.run(
        ["sh", "-c", command, sys.executable, code], capture_output=True, timeout=60, check=False
    )


def test_only_the_wire_reaches_stdout() -> None:
    code = (
        TAKE + "import os, subprocess, sys; print('printed'); os.write(1, b'written ');"
        "sys.__stdout__.write('kept '); sys.__stdout__.flush();"
        "subprocess.run(['echo', 'by a subprocess']); out.write(b'wire')"
    )

    result = run(code)

    assert result.stdout == b"wire"
    for word in (b"printed", b"written", b"kept", b"by a subprocess"):
        assert word in result.stderr


def test_text_that_was_printed_but_not_flushed_before_goes_to_stderr() -> None:
    code = "import sys; sys.stdout.reconfigure(write_through=False); sys.stdout.write('early');"

    result = run(code + TAKE + "out.write(b'wire')")

    assert result.stdout == b"wire"
    assert result.stderr == b"early"


def test_a_subprocess_does_not_inherit_stdout() -> None:
    code = (
        TAKE + "import subprocess, sys;"
        "subprocess.run([sys.executable, '-c', f'import os; os.write({out._fd}, b\"mine\")'],"
        "close_fds=False)"
    )

    result = run(code)

    assert result.stdout == b""
    assert b"Bad file descriptor" in result.stderr


def test_prints_are_discarded_if_stderr_is_closed() -> None:
    result = run(TAKE + "import os; os.write(1, b'lost'); out.write(b'wire')", "2>&-")

    assert (result.stdout, result.returncode) == (b"wire", 0)


def test_with_stdout_closed_no_file_becomes_fd_1(tmp_path: Path) -> None:
    """A file opened next must not become fd 1, where a C library would write into it."""
    path = tmp_path / "file"
    code = TAKE + f"f = open({str(path)!r}, 'wb'); import os; os.write(1, b'x'); out.write(b'wire')"

    result = run(code, ">&-")

    assert result.returncode == 0
    assert path.read_bytes() == b""


def test_a_process_with_all_three_streams_closed_runs() -> None:
    result = run(TAKE + "print('x'); out.write(b'wire')", "<&- >&- 2>&-")

    assert result.returncode == 0


def test_writing_to_a_reader_that_closed_the_pipe_raises_broken_pipe() -> None:
    read, write = os.pipe()
    os.close(read)
    code = TAKE + "\ntry: out.write(b'x')\nexcept BrokenPipeError: raise SystemExit(7)"

    result = subprocess.run([sys.executable, "-c", code], stdout=write, timeout=60, check=False)
    os.close(write)

    assert result.returncode == 7


def test_a_non_blocking_pipe_gets_all_of_a_long_text() -> None:
    code = TAKE + "import os; os.set_blocking(out._fd, False); out.write(bytes(3_000_000))"

    result = run(code)

    assert len(result.stdout) == 3_000_000


def test_stdin_is_read_by_the_wire_alone() -> None:
    code = (
        "from answerback.server.process import take_stdin; import os, subprocess, sys;"
        "fd = take_stdin(); subprocess.run(['cat']); print(repr(sys.stdin.read()), flush=True);"
        "os.write(1, os.read(fd, 99))"
    )

    result = run(code, "<<END\nwire\nEND")

    assert result.stdout == b"''\nwire\n"


def test_a_subprocess_does_not_inherit_stdin() -> None:
    code = (
        "from answerback.server.process import take_stdin; import subprocess, sys;"
        "probe = f'import os; os.read({take_stdin()}, 1)';"
        "subprocess.run([sys.executable, '-c', probe], close_fds=False)"
    )

    result = run(code)

    assert b"Bad file descriptor" in result.stderr


CLOSING = """
import sys

from answerback import App

app = App("closing")


@app.tool
def close_stderr() -> str:
    sys.stderr.close()
    return "closed"


@app.tool
def fail() -> None:
    raise RuntimeError("it is logged")


app.run()
"""


def test_a_tool_that_closes_stderr_does_not_end_the_server_and_its_log(
    tmp_path: Path, serve: Any, call: Any
) -> None:
    file = tmp_path / "closing.py"
    file.write_text(CLOSING)
    with serve(file) as server:
        answers = [call(server, name) for name in ("close_stderr", "fail", "close_stderr")]
        server.process.terminate()
        log = server.stderr.read()

    assert [list(each) for each in answers] == [["result"], ["error"], ["result"]]
    assert b"it is logged" in log


def test_a_tool_that_closes_stderr_does_not_end_a_server_on_stdio(tmp_path: Path) -> None:
    file = tmp_path / "closing.py"
    file.write_text(CLOSING)
    names = ("close_stderr", "fail", "fail", "close_stderr")
    messages = [
        {"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": name}}
        for n, name in enumerate(names)
    ]

    with subprocess.Popen(
        [sys.executable, str(file), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        answers = []
        for message in messages:
            process.stdin.write(json.dumps(message).encode() + b"\n")
            process.stdin.flush()
            answers.append(json.loads(process.stdout.readline()))
        _, log = process.communicate(timeout=60)

    assert [each["result"]["isError"] for each in answers] == [False, True, True, False]
    assert b"it is logged" in log
    assert process.returncode == 0
