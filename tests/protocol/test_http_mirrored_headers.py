"""The headers that repeat parts of a stateless request: they must be equal to its body."""

from __future__ import annotations

import pytest
from tests.fuzz.http_client import (
    ServedApp,
    mirrored_headers,
    read_to_end,
    stateless_call,
    status_of,
)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Mcp-Protocol-Version": "2025-11-25"}, -32020),
        ({"Mcp-Protocol-Version": "2099-01-01"}, -32020),
        ({"Mcp-Protocol-Version": ""}, -32020),
        ({"Mcp-Method": "tools/list"}, -32020),
        ({"Mcp-Method": "TOOLS/CALL"}, -32020),
        ({"Mcp-Method": ""}, -32020),
        ({"Mcp-Name": "add"}, -32020),
        ({"Mcp-Name": ""}, -32020),
        ({"Mcp-Name": "Region"}, -32020),
        ({"Mcp-Name": "=?base64?cmVnaW9u"}, -32020),
        ({"Mcp-Name": "=?base64?cmVnaW9?="}, -32020),
        ({"Mcp-Name": "=?base64?cmVn aW9u?="}, -32020),
        ({"Mcp-Name": "=?base64?/////w==?="}, -32020),
        ({"Mcp-Name": "=?base64?=="}, -32020),
        ({"Mcp-Name": "=?base64?="}, -32020),
        ({"Mcp-Name": "=?BASE64?cmVnaW9u?="}, -32020),
        ({"Mcp-Param-Region": ""}, -32020),
        ({"Mcp-Param-Region": "WEST"}, -32020),
        ({"Mcp-Param-Region": "=?base64?d2VzdA?="}, -32020),
        ({"Mcp-Param-Number": ""}, -32020),
        ({"Mcp-Param-Number": "eight"}, -32020),
        ({"Mcp-Param-Number": "nan"}, -32020),
        ({"Mcp-Param-Number": "inf"}, -32020),
        ({"Mcp-Param-Number": "9007199254740992"}, -32020),
        ({"Mcp-Param-Number": "9007199254740_993"}, -32020),
        ({"Mcp-Param-Number": "9" * 5000}, -32020),
        ({"Mcp-Name": " region\t", "Mcp-Param-Region": "=?base64?d2VzdA==?="}, None),
        ({"Mcp-Name": "=?base64?cmVnaW9u?="}, None),
        ({"Mcp-Param-Number": "9007199254740993.0"}, None),
        ({"Mcp-Param-Other": "whatever"}, None),
        ({"Mcp-Session-Id": "forged", "Last-Event-ID": "forged"}, None),
    ],
)
def test_a_header_that_differs_from_the_body_is_refused_with_400(
    served: ServedApp, headers: dict[str, str], code: int | None
) -> None:
    frame = stateless_call(1, "region", where="west", number=9007199254740993)
    mirrored = {"Mcp-Param-Region": "west", "Mcp-Param-Number": "9007199254740993"}

    response = served.post_stateless(frame, {**mirrored, **headers})

    assert response.frame["id"] == 1
    if code is None:
        assert response.frame["result"]["isError"] is False
    else:
        assert (response.status, response.code) == (400, code)


@pytest.mark.parametrize(
    "name", ["Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-Region"]
)
def test_a_repeated_mirrored_header_is_refused_with_400(served: ServedApp, name: str) -> None:
    frame = stateless_call(1, "region", where="west", number=7)
    headers = {**mirrored_headers(frame), "Mcp-Param-Region": "west", "Mcp-Param-Number": "7"}
    repeated = {**headers, "X-Last": f"1\r\n{name}: {headers[name]}", "Connection": "close"}
    connection = served.start_post(frame, repeated)

    response = read_to_end(connection)

    assert status_of(response) == 400
    assert b"-32020" in response
