"""The ported servers answer; `make ported` compares them with the published servers."""

from __future__ import annotations

import asyncio

import pytest
from tests.ported.comparison import SERVERS, Server, find_fault_of_error, own_answers


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_a_ported_server_answers_each_call_or_says_what_is_wrong(server: Server) -> None:
    answers = asyncio.run(own_answers(server))

    pairs = list(zip(server.calls, answers, strict=True))
    refused = [call.tool for call, answer in pairs if call.same is not None and answer.failed]
    faults = [find_fault_of_error(call, answer) for call, answer in pairs if call.same is None]
    assert refused == []
    assert [fault for fault in faults if fault] == []
    assert len(answers) >= 30
