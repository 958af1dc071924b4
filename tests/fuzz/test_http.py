"""Each posted message, valid or malformed, gets the right status and error code."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.frames import (
    STATEFUL,
    STATELESS,
    VERSIONS,
    corrupted_texts,
    encoded,
    malformed_frames,
    parse_with_json_module,
    readable_id,
    valid_frames,
)
from tests.fuzz.http_client import HttpResponse, ServedApp, mirrored_headers, served_app
from tests.fuzz.stdio_client import Json
from tests.fuzz.timed import examples, holds

STATUS = {
    -32700: {400},
    -32600: {200, 400},
    -32601: {200, 404},
    -32602: {200, 400},
    -32002: {200},
    -32020: {400},
    -32021: {400},
    -32022: {400},
}
"""The HTTP statuses of each error code; -32603 would be a bug of the server."""


@pytest.fixture(scope="module")
def served() -> Iterator[ServedApp]:
    with served_app() as server:
        yield server
        assert server.still_serves()
        assert server.log() == ""


@pytest.fixture(scope="module")
def sessions(served: ServedApp) -> dict[str, dict[str, str]]:
    return {version: served.initialize(version, elicitation={}) for version in STATEFUL}


def check(response: HttpResponse, body: bytes) -> None:
    """The response to a request with that body has the right status, id and error code."""
    id = readable_id(parse_with_json_module(body))
    assert response.status in (200, 202, 400, 404)
    assert (response.status == 202) == (response.frames == [])
    for frame in response.frames:
        if isinstance(frame, list) or "method" in frame:
            continue
        assert frame.get("id", id) == id
        if "error" in frame:
            assert response.status in STATUS[frame["error"]["code"]], frame["error"]
        else:
            assert response.status == 200
            assert "id" in frame


def headers_for(
    version: str, frame: Json, sessions: dict[str, dict[str, str]], *, in_session: bool
) -> dict[str, str]:
    """Headers of the stateful era, with or without a session; else those that mirror the frame."""
    if version == STATELESS:
        return mirrored_headers(frame)
    return sessions[version] if in_session else {"Mcp-Protocol-Version": version}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_malformed_message_is_answered_with_a_matching_status_code_and_id(
    served: ServedApp, sessions: dict[str, dict[str, str]], version: str
) -> None:
    @examples(150)
    @given(malformed_frames(version), st.booleans(), st.sampled_from(valid_frames(version)))
    def property(frame: Json, in_session: bool, other: Json) -> None:
        mirrored = frame if in_session or version != STATELESS else other
        body = encoded(frame).encode("utf-8", "surrogatepass")
        headers = headers_for(version, mirrored, sessions, in_session=in_session)
        subscribes = frame.get("method") == "subscriptions/listen"

        response = served.send(body, headers, first_event_only=subscribes)

        check(response, body)

    assert holds(property)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_corrupted_text_is_answered_with_a_matching_status_code_and_id(
    served: ServedApp, sessions: dict[str, dict[str, str]], version: str
) -> None:
    @examples(100)
    @given(corrupted_texts(version), st.sampled_from(valid_frames(version)))
    def property(body: bytes, frame: Json) -> None:
        headers = headers_for(version, frame, sessions, in_session=True)

        response = served.send(body, headers, first_event_only=b"listen" in body)

        check(response, body)

    assert holds(property)


ODD_HEADERS = st.dictionaries(
    st.sampled_from(
        [
            "Mcp-Protocol-Version",
            "Mcp-Session-Id",
            "Mcp-Method",
            "Mcp-Name",
            "Mcp-Param-Region",
            "Last-Event-ID",
            "Accept",
            "Content-Type",
        ]
    ),
    st.one_of(
        st.sampled_from([*VERSIONS, "2099-01-01", "tools/call", "add", "application/json"]),
        st.sampled_from(["=?base64?YWRk?=", "=?base64?YWRk", "=?base64?=", "=?BASE64?YWRk?="]),
        st.sampled_from(["A" * 60, "x.y-1", "0." + "a" * 16 + "-1", "\xb2", "9" * 5000]),
        st.text(st.characters(min_codepoint=32, max_codepoint=255, exclude_characters="\x7f")),
    ),
    max_size=4,
)


def test_odd_headers_never_cause_a_server_error(served: ServedApp) -> None:
    @examples(150)
    @given(
        ODD_HEADERS,
        st.sampled_from(VERSIONS).flatmap(lambda version: st.sampled_from(valid_frames(version))),
        st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD"]),
    )
    def property(headers: dict[str, str], frame: Json, method: str) -> None:
        body = encoded(frame).encode() if method == "POST" else b""

        response = served.send(body, headers, method=method, first_event_only=True)

        assert response.status in (200, 202, 204, 400, 404, 405, 406, 415), response.status

    assert holds(property)
