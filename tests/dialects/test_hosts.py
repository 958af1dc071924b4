"""`reply.as_seen_by(host)`: what the model behind each modelled host sees of a reply."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest
from tests.matrix.builders import app

from answerback import Image, Link, connect, failure, read, success
from answerback.contract import STANDARD
from answerback.dialects.hosts import HOSTS

BOTH = success("Found one city.", {"name": "Oslo"})
EACH_HOST = pytest.mark.parametrize("host", HOSTS)


@pytest.mark.parametrize(
    ("host", "half"),
    [
        ("claude-code", "structuredContent"),
        ("codex", "structuredContent"),
        ("copilot-cli", "both"),
        ("cursor", "content"),
        ("kimi-code", "content"),
        ("opencode", "content"),
        ("open-webui", "content"),
        ("chatgpt", "both"),
        ("claude-ai", "both"),
    ],
)
def test_each_host_shows_its_half_of_a_text_beside_data(host: str, half: str) -> None:
    seen = BOTH.as_seen_by(host)

    assert seen.half == half
    assert ("Found one city." in seen.text) == (half != "structuredContent")
    assert '"name":"Oslo"' in seen.text


def test_a_text_beside_data_is_named_as_lost_with_its_pointer() -> None:
    seen = BOTH.as_seen_by("claude-code")

    assert [(each.part, each.pointer) for each in seen.lost] == [("text", "/content/0")]
    assert not seen.complete


def test_a_text_that_a_member_of_the_data_repeats_is_not_lost() -> None:
    result = BOTH.to("mcp")
    result["structuredContent"]["message"] = "Found one city."
    result["_meta"] = {"answerback/added": "message"}

    assert [read(result).as_seen_by(host).lost for host in HOSTS] == [()] * len(HOSTS)


def test_a_text_that_is_made_of_the_data_is_not_lost() -> None:
    result = {
        "content": [{"type": "text", "text": "Created at: 12:30\nName: Oslo"}],
        "structuredContent": {"createdAt": "12:30", "name": "Oslo"},
    }

    assert [read(result).as_seen_by(host).lost for host in HOSTS] == [()] * len(HOSTS)


def test_an_image_that_a_member_of_the_data_names_is_not_lost() -> None:
    image = Image(b"GIF89a", "image/gif", alt="a cat")
    result = success(data={"name": "Oslo"}, content=[image]).to("mcp")
    lost = read(result).as_seen_by("codex").lost
    result["structuredContent"]["message"] = "[image: image/gif, 6 bytes, a cat]"
    result["_meta"] = {"answerback/added": "message"}

    named = read(result).as_seen_by("codex")

    assert [each.part for each in lost] == ["image"]
    assert named.lost == ()


def test_images_are_shown_as_images_where_their_half_is() -> None:
    image = Image(b"GIF89a", "image/gif")
    reply = success(data={"name": "Oslo"}, content=[image])

    assert reply.as_seen_by("opencode").images == (image,)
    assert reply.as_seen_by("claude-code").images == ()


@EACH_HOST
def test_a_block_for_the_user_only_is_never_lost(host: str) -> None:
    result: dict[str, Any] = {
        "content": [
            {"type": "text", "text": "for you", "annotations": {"audience": ["user"]}},
            {"type": "text", "text": '{"name":"Oslo"}'},
        ],
        "structuredContent": {"name": "Oslo"},
    }

    assert read(result).as_seen_by(host).lost == ()


@EACH_HOST
def test_an_error_is_shown_with_its_message_and_hint(host: str) -> None:
    seen = failure("no city Osl", hint="try Oslo").as_seen_by(host)

    assert "no city Osl" in seen.text
    assert "try Oslo" in seen.text
    assert seen.failed == (host != "codex")
    assert [each.part for each in seen.lost] == (["flag"] if host == "codex" else [])


@EACH_HOST
def test_data_without_content_is_shown_or_named_as_lost(host: str) -> None:
    seen = read({"content": [], "structuredContent": {"name": "Oslo"}}).as_seen_by(host)

    lost = [each.part for each in seen.lost]
    assert lost == (["data"] if host == "cursor" else [])


@pytest.mark.parametrize(
    ("host", "limit"), [("claude-code", 50_000), ("codex", 40_000), ("kimi-code", 50_000)]
)
def test_a_host_cuts_a_large_reply_and_says_what_is_left(host: str, limit: int) -> None:
    fits = success("x" * (limit - 100)).as_seen_by(host)
    cut = success("x" * (limit + 100)).as_seen_by(host)

    assert not fits.cut
    assert f"of {limit + 100:,} characters" in cut.cut or host == "codex"
    assert len(cut.text) < limit + 100
    assert not cut.complete


def test_the_size_that_a_tool_declares_raises_the_limit_of_claude_code() -> None:
    reply = success("x" * 80_000)

    assert reply.as_seen_by("claude-code").cut
    assert len(reply.as_seen_by("claude-code").text) == 2_048
    assert not reply.as_seen_by("claude-code", max_chars=100_000).cut


def test_claude_desktop_shows_nothing_of_a_reply_over_one_megabyte() -> None:
    seen = success("x" * 1_100_000).as_seen_by("claude-ai")

    assert "too large" in seen.text
    assert seen.cut


def test_opencode_shows_the_first_lines_of_a_long_reply() -> None:
    seen = success("line\n" * 3_000).as_seen_by("opencode")

    assert seen.text.count("line") == 2_000
    assert "2,000 of 3,001 lines" in seen.cut


def test_the_tokens_are_about_a_quarter_of_the_characters() -> None:
    assert success("x" * 400).as_seen_by("cursor").tokens == 100


def test_metadata_of_an_author_is_shown_by_kimi_code_only() -> None:
    reply = success("done", meta={"example.com/page": "page-77"})

    assert [host for host in HOSTS if "page-77" in reply.as_seen_by(host).text] == ["kimi-code"]


def test_an_unknown_host_is_refused_with_the_names_that_there_are() -> None:
    with pytest.raises(
        ValueError, match="no host or framework is called 'clippy'; choose from claude-code, cod"
    ):
        BOTH.as_seen_by("clippy")


@EACH_HOST
def test_a_malformed_result_is_shown_as_far_as_it_goes(host: str) -> None:
    result = {"content": [{"type": "image"}, {"type": "text"}, None, {"type": "resource"}, {}]}

    assert read(result).as_seen_by(host).host == host


@EACH_HOST
def test_a_host_shows_its_half_of_a_result_whose_halves_differ(host: str) -> None:
    result = {
        "content": [{"type": "text", "text": "Found it."}],
        "structuredContent": {"name": "Oslo"},
    }

    assert read(result).as_seen_by(host).half == HOSTS[host].half


def test_each_host_has_a_date_and_a_source() -> None:
    for host in HOSTS.values():
        assert re.fullmatch(r"2026-\d\d-\d\d", host.date)
        assert host.source
        assert host.size
        assert host.images


# What the hosts lose of the twenty replies. Codex gives a model no flag for a failure.
LOST = {"a_failure": {"codex": ["flag"]}, "a_failure_to_retry": {"codex": ["flag"]}}


@pytest.mark.parametrize("tool", app.tools)
def test_what_each_host_loses_of_our_own_replies(tool: str) -> None:
    """The replies are those that a client receives; `python -m tests.matrix --hosts` shows all."""
    with connect(app) as server:
        reply = server.call(tool)
    lost = {host: [each.part for each in reply.as_seen_by(host).lost] for host in HOSTS}

    assert {host: parts for host, parts in lost.items() if parts} == LOST.get(tool, {})


def test_there_are_twenty_replies() -> None:
    assert len(app.tools) == 20


def test_a_link_that_a_text_repeats_is_not_lost() -> None:
    link = Link("https://example.com/report", "report")
    reply = success("See https://example.com/report", content=[link])

    assert [reply.as_seen_by(host).lost for host in HOSTS] == [()] * len(HOSTS)


@EACH_HOST
def test_a_failure_whose_message_reads_as_an_error_loses_nothing(host: str) -> None:
    prefixed = msgspec.structs.replace(
        failure("no city Osl"), contract=STANDARD.derive(error_text="prefixed")
    )

    assert failure("Failed to open Osl").as_seen_by(host).lost == ()
    assert prefixed.as_seen_by(host).lost == ()
