"""How long a call over stdio waits while the server works on a large message."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .processes import Stopwatch

APP = Path(__file__).parents[1] / "apps" / "large_arguments.py"
SIZE = 4_000_000
# The waits of one attempt also have the pauses of a busy machine, so the best attempt counts.
ATTEMPTS = 10


class Client:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin, process.stdout
        self._pid = process.pid

    def send(self, text: str) -> None:
        self._stdin.write(text.encode() + b"\n")
        self._stdin.flush()

    def read(self) -> Any:
        return json.loads(self._stdout.readline())

    def longest_wait(self, large: str) -> float:
        """The longest time that a quick call took while the message *large* was worked on."""
        self.send(large)
        longest, is_answered, number = 0.0, False, 0
        while not is_answered:
            number += 1
            watch = Stopwatch(self._pid)
            self.send(call(number, "quick", "{}"))
            while (response := self.read()).get("id") != number:
                is_answered = True
            longest = max(longest, watch.seconds())
            # An error without an id is the response to a message that cannot be read.
            assert "result" in response
        return longest


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    process = subprocess.Popen(
        [sys.executable, str(APP), "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        yield Client(process)
        assert process.stdin is not None
        process.stdin.close()


def call(id: int | str, tool: str, arguments: str) -> str:
    params = f'{{"name":"{tool}","arguments":{arguments}}}'
    return f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"method":"tools/call","params":{params}}}'


def items(item: str, last: str, levels: int = 1) -> str:
    values = (item + ",") * (SIZE // (len(item) + 1)) + last
    return f'{{"x":{"[" * levels}{values}{"]" * levels}}}'


def least_longest_wait(client: Client, large: str, enough: float) -> float:
    least = 60.0
    for _ in range(ATTEMPTS):
        least = min(least, client.longest_wait(large))
        if least < enough:
            break
    return least


@pytest.mark.parametrize(
    ("tool", "levels"),
    [("inline_number", 1), ("numbers", 1), ("points", 1), ("tables", 2), ("deep_tables", 10)],
)
def test_a_call_waits_less_than_50_ms_while_four_megabytes_are_refused(
    client: Client, tool: str, levels: int
) -> None:
    large = call("large", tool, items("{}", "1", levels))

    assert least_longest_wait(client, large, 0.05) < 0.05


@pytest.mark.parametrize(
    ("tool", "item"), [("numbers", "1"), ("points", '{"x":1,"y":2}'), ("tables", "[]")]
)
def test_a_call_waits_less_than_750_ms_while_four_valid_megabytes_are_decoded(
    client: Client, tool: str, item: str
) -> None:
    large = call("large", tool, items(item, item))

    assert least_longest_wait(client, large, 0.75) < 0.75
