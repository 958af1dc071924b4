"""Whatever is posted, each message gets the right status and code, and the server goes on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.frames import (
    STATEFUL,
    STATELESS,
    VERSIONS,
    broken_texts,
    encoded,
    good_frames,
    read_as_python_does,
    readable_id,
    spoiled_frames,
)
from tests.fuzz.pipes import Json
from tests.fuzz.posts import Said, Site, routing, site
from tests.fuzz.timed import examples, for_a_while

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
"""The statuses with which each error may come; -32603 would be a mistake of ours."""


@pytest.fixture(scope="module")
def served() -> Iterator[Site]:
    with site() as server:
        yield server
        server.still_serves()
        assert server.complaints() == ""


@pytest.fixture(scope="module")
def sessions(served: Site) -> dict[str, dict[str, str]]:
    return {version: served.initialize(version, elicitation={}) for version in STATEFUL}


def check(said: Said, body: bytes) -> None:
    message = read_as_python_does(body)
    id = readable_id(message)
    assert said.status in (200, 202, 400, 404)
    assert (said.status == 202) == (said.frames == [])
    for frame in said.frames:
        if isinstance(frame, list) or "method" in frame:
            continue
        assert frame.get("id", id) == id
        if "error" in frame:
            assert said.status in STATUS[frame["error"]["code"]], frame["error"]
        else:
            assert said.status == 200
            assert "id" in frame


def headers_for(
    version: str, frame: Json, sessions: dict[str, dict[str, str]], *, plain: bool
) -> dict[str, str]:
    """Of a session or of none; in the stateless era those that fit the frame."""
    if version == STATELESS:
        return routing(frame)
    return {"Mcp-Protocol-Version": version} if plain else sessions[version]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_spoiled_message_is_answered_as_it_deserves(
    served: Site, sessions: dict[str, dict[str, str]], version: str
) -> None:
    @examples(150)
    @given(spoiled_frames(version), st.booleans(), st.sampled_from(good_frames(version)))
    def holds(frame: Json, plain: bool, other: Json) -> None:
        mirrored = other if plain and version == STATELESS else frame
        body = encoded(frame).encode("utf-8", "surrogatepass")
        headers = headers_for(version, mirrored, sessions, plain=plain)

        said = served.send(body, headers, listens=frame.get("method") == "subscriptions/listen")

        check(said, body)

    for_a_while(holds)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_broken_text_is_answered_as_it_deserves(
    served: Site, sessions: dict[str, dict[str, str]], version: str
) -> None:
    @examples(100)
    @given(broken_texts(version), st.sampled_from(good_frames(version)))
    def holds(body: bytes, frame: Json) -> None:
        headers = headers_for(version, frame, sessions, plain=False)

        said = served.send(body, headers, listens=b"listen" in body)

        check(said, body)

    for_a_while(holds)


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


def test_odd_headers_are_the_client_s_fault_and_never_the_server_s(served: Site) -> None:
    @examples(150)
    @given(
        ODD_HEADERS,
        st.sampled_from(VERSIONS).flatmap(lambda version: st.sampled_from(good_frames(version))),
        st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "PUT", "OPTIONS", "HEAD"]),
    )
    def holds(headers: dict[str, str], frame: Json, method: str) -> None:
        body = encoded(frame).encode() if method == "POST" else b""

        said = served.send(body, headers, method=method, listens=True)

        assert said.status in (200, 202, 204, 400, 404, 405, 406, 415), said.status

    for_a_while(holds)
