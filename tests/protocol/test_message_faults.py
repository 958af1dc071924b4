"""The validation of messages detects members and results that a version does not have."""

from __future__ import annotations

from typing import Any

import pytest
from tests.protocol.message_faults import SCHEMAS, model_faults, schema_faults

TEXT = {"content": [{"type": "text", "text": "a"}]}
TOOL = {"name": "a", "inputSchema": {"type": "object"}}
CASES: list[tuple[str, str, str, dict[str, Any]]] = [
    ("structured content", "2024-11-05", "tools/call", TEXT | {"structuredContent": {}}),
    ("audio", "2024-11-05", "tools/call", {"content": [{"type": "audio", "data": "YQ=="}]}),
    ("tool annotations", "2024-11-05", "tools/list", {"tools": [TOOL | {"annotations": {}}]}),
    ("a title", "2025-03-26", "tools/list", {"tools": [TOOL | {"title": "A"}]}),
    ("icons", "2025-06-18", "tools/list", {"tools": [TOOL | {"icons": []}]}),
    ("a result type", "2025-11-25", "tools/call", TEXT | {"resultType": "complete"}),
    ("a list as data", "2025-11-25", "tools/call", TEXT | {"structuredContent": [1]}),
    ("no result type", "2026-07-28", "tools/call", TEXT),
    ("no cache hints", "2026-07-28", "tools/list", {"resultType": "complete", "tools": []}),
]

needs_schemas = pytest.mark.skipif(
    not SCHEMAS.is_dir(),
    reason="the official schemas are missing; they are not part of this repository",
)


@needs_schemas
@pytest.mark.parametrize(("what", "version", "method", "result"), CASES)
def test_the_closed_schemas_refuse_members_that_a_version_lacks(
    what: str, version: str, method: str, result: dict[str, Any]
) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": result}

    assert schema_faults(message, version, method, closed=True), what


@needs_schemas
def test_a_request_that_a_version_lacks_is_a_fault() -> None:
    params = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": params}

    assert schema_faults(message, "2025-03-26", None, closed=False)
    assert model_faults(message, "2025-03-26", None)
    assert not schema_faults(message, "2025-06-18", None, closed=True)


def test_the_models_refuse_a_stateful_result_in_the_stateless_era() -> None:
    message = {"jsonrpc": "2.0", "id": 1, "result": TEXT}

    assert model_faults(message, "2026-07-28", "tools/call")
    assert not model_faults(message, "2025-11-25", "tools/call")
