from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("tools")
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


def test_a_host_gets_a_response_and_no_instructions(answerback: Run) -> None:
    done = answerback("mcp", "tools.py", stdin=PING)

    assert done.stdout == '{"jsonrpc":"2.0","id":1,"result":{}}\n'
    assert "JSON-RPC" not in done.stderr
    assert done.exit == 0


def test_a_terminal_gets_instructions(on_a_terminal: Run) -> None:
    seen = on_a_terminal("mcp", "tools.py", typed=b"\x04")

    assert "waits for JSON-RPC" in seen.stdout
    assert "Ctrl-D ends it\n" in seen.stdout
    assert seen.exit == 0


def call(tool: str) -> bytes:
    params = f'{{"name":"{tool}","arguments":{{}}}}'
    return f'{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}\n'.encode()


def test_a_host_sees_the_text_of_exceptions_with_debug(answerback: Run) -> None:
    masked = answerback("mcp", "tools.py", stdin=call("secret"))
    shown = answerback("mcp", "tools.py", "--debug", stdin=call("secret"))

    assert "hunter2" not in masked.stdout
    assert "RuntimeError: password=hunter2" in shown.stdout


def test_calls_of_a_host_are_recorded_with_audit(answerback: Run) -> None:
    answerback("mcp", "tools.py", "--audit", "audit.jsonl", stdin=call("city"))

    stats = answerback("audit", "stats", "audit.jsonl")
    assert stats.stdout.splitlines()[1].split()[:3] == ["city", "1", "0"]


def test_a_file_that_cannot_be_recorded_in_is_refused(answerback: Run) -> None:
    done = answerback("mcp", "tools.py", "--audit", "audit.txt", stdin=PING)

    assert done.exit == 2
    assert "its name must end in .db" in done.stderr


def test_the_log_of_a_stdio_server_has_the_level_that_was_asked_for(
    answerback: Run, tmp_path: Path
) -> None:
    (tmp_path / "logging_tools.py").write_text(
        "import logging\nfrom answerback import App\napp = App('a')\n"
        "@app.tool\ndef work() -> None:\n    logging.getLogger('own').info('half way')\n"
    )

    quiet = answerback("mcp", "logging_tools.py", stdin=call("work"))
    loud = answerback("mcp", "logging_tools.py", "--log-level", "info", stdin=call("work"))

    assert "half way" not in quiet.stderr
    assert "INFO own: half way" in loud.stderr
