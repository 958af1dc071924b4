from collections.abc import Callable
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
