"""Whatever a tool returns: a reply that was cut fits, is valid, and says only what is true."""

from __future__ import annotations

import os
from typing import Any

import jsonschema_rs
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.fitting.kept_replies import Fitted, difference, fitted, said
from tests.fitting.large_values import Values

from answerback import App, Link, Reply, Text
from answerback.calls.runners import run_at_once
from answerback.core.versions import LATEST_STATEFUL
from answerback.protocol.listing import tool_entry

EXAMPLES = int(os.environ.get("CUTS", "200"))
CONTRACTS = ("standard", "aligned", "envelope", "apps", "direct")


@settings(max_examples=EXAMPLES, derandomize="CUTS" not in os.environ, database=None)
@given(
    seed=st.integers(0, 10**9),
    budget=st.sampled_from([500, 700, 1000, 2500]),
    contract=st.sampled_from(CONTRACTS),
)
def test_a_reply_over_its_budget_is_cut_within_its_schema_or_is_an_error(
    seed: int, budget: int, contract: str
) -> None:
    kind, make = Values(seed).top()
    app = App("values", contract=contract, budget=budget)

    def tool() -> Any:
        raise NotImplementedError

    tool.__annotations__["return"] = kind
    app.add_tool(tool, name="tool")

    found = run_at_once(fitted(app, "tool", make()))

    assert max(found.halves) <= budget
    if found.reply is not found.whole:
        check_error(found) if found.reply.error is not None else check_cut(found)


def check_error(found: Fitted) -> None:
    error = found.reply.error
    assert error is not None
    assert error.code == "TOO_LARGE"
    links = [block for block in found.reply.content if isinstance(block, Link)]
    assert [found.kept[link.uri] for link in links] == [found.whole.encoded]


def check_cut(found: Fitted) -> None:
    """Compare a reply with its whole."""
    reply, whole = found.reply, found.whole
    assert reply.encoded is not None
    assert whole.encoded is not None
    cuts = difference(
        msgspec.json.decode(whole.encoded), msgspec.json.decode(reply.encoded), reply.cuts
    )
    assert cuts
    assert sorted(cuts, key=str) == sorted(reply.cuts, key=str)
    listed = tool_entry(found.tool, LATEST_STATEFUL)
    if "outputSchema" in listed:
        jsonschema_rs.validate(listed["outputSchema"], found.result["structuredContent"])
    for cut in reply.cuts[:5]:
        assert f"Showing {cut.returned:,} of {cut.total:,} {cut.unit}" in said(reply)
    links = [block for block in reply.content if isinstance(block, Link)]
    assert [found.kept[link.uri] for link in links] == [whole.encoded]


@settings(max_examples=EXAMPLES, derandomize="CUTS" not in os.environ, database=None)
@given(
    seed=st.integers(0, 10**9),
    count=st.integers(1, 30),
    numbers=st.sampled_from([None, 5, 500]),
    contract=st.sampled_from(CONTRACTS),
)
def test_texts_beside_data_are_cut_and_named_by_their_blocks(
    seed: int, count: int, numbers: int | None, contract: str
) -> None:
    values = Values(seed)
    texts = [values.text() for _ in range(count)]
    app = App("texts", contract=contract, budget=2500)
    app.add_tool(lambda: None, name="tool")
    data: Any = msgspec.UNSET if numbers is None else list(range(numbers))
    content = tuple(map(Text, texts))

    found = run_at_once(fitted(app, "tool", Reply(content=content, data=data)))

    assert max(found.halves) <= 2500
    cuts = {cut.path: cut for cut in found.reply.cuts}
    if found.reply is found.whole or found.reply.error is not None:
        return
    left = cuts["content[]"].returned if "content[]" in cuts else count
    sent = [block.text for block in found.reply.content if isinstance(block, Text)]
    # A contract may begin with the text of the data.
    start = next(n for n in range(len(sent)) if texts[0].startswith(sent[n]))
    for index, (whole, text) in enumerate(zip(texts[:left], sent[start:], strict=False)):
        expected = [cuts[f"content[{index}]"]] if text != whole else []
        assert difference(whole, text, found.reply.cuts, f"content[{index}]") == expected
    assert left == count or cuts["content[]"].total == count
