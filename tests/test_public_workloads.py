"""`python -m bench public` sends its loads, checks every answer, and reports what it measured."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from bench.public import command, report
from bench.public.catalogue import api_answer
from bench.public.contenders import ECHO_WORKLOAD, SHOP_WORKLOAD, Workload
from bench.public.http_answers import Answer, message_in, read_answer
from bench.public.report import Row
from bench.public.shop_users import ITEMS, check_cart, check_order, check_search
from bench.public.steps import WrongAnswer

ROOT = Path(__file__).parent.parent
QUICK = ("--smoke", "--rounds", "1", "--seconds", "0.3")


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", "public", *QUICK, *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("workload", [SHOP_WORKLOAD, ECHO_WORKLOAD], ids=lambda each: each.name)
def test_our_server_and_the_floor_answer_every_request_of_a_workload_as_expected(
    workload: Workload,
) -> None:
    done = _run("--workload", workload.name)

    assert done.returncode == 0, done.stderr
    titles = {entry.title for entry in workload.entries if entry.name.startswith(("ours", "bare"))}
    shown = {title for title in titles if f"| {title} |" in done.stdout}
    assert shown == {title for title in titles if "httpx" not in title}


@pytest.mark.slow
def test_a_wrong_answer_fails_the_run_and_says_which_server_gave_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bare = next(entry for entry in ECHO_WORKLOAD.entries if entry.name == "bare")
    # The shop's tools are not the one that this workload calls.
    other = msgspec.structs.replace(bare, name="other", command=_with(bare.command, "bare_shop"))
    workload = msgspec.structs.replace(ECHO_WORKLOAD, entries=(bare, other))

    status = command.main(QUICK, [workload])

    assert status == 1
    assert "other: tools/list got a wrong answer: expected the tools" in capsys.readouterr().err


def _with(command: tuple[str, ...], module: str) -> tuple[str, ...]:
    return tuple(part.replace("bare_echo", module) for part in command)


@pytest.mark.slow
def test_a_server_that_does_not_start_fails_the_run_with_its_last_words(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bare = next(entry for entry in ECHO_WORKLOAD.entries if entry.name == "bare")
    broken = msgspec.structs.replace(bare, command=_with(bare.command, "no_such_module"))
    workload = msgspec.structs.replace(ECHO_WORKLOAD, entries=(broken,))

    status = command.main(QUICK, [workload])

    assert status == 1
    said = capsys.readouterr().err
    assert "bare did not start" in said
    assert "no_such_module" in said


@pytest.mark.parametrize(
    ("check", "right", "member", "wrong"),
    [
        (check_search, "search", "total_found", 2250),
        (check_search, "search", "products", [1]),
        (check_search, "search", "top10_popular_ids", []),
        (check_cart, "cart", "cart", {"items": []}),
        (check_cart, "cart", "recent_history", [1, 2, 3, 4]),
        (check_order, "order", "status", "refused"),
        (check_order, "order", "total", 0),
        (check_order, "order", "items_count", 1),
    ],
)
def test_each_check_of_the_shop_refuses_an_answer_that_differs_in_one_member(
    check: object, right: str, member: str, wrong: object
) -> None:
    assert callable(check)
    answer = Answer(200, b"", b"")
    check("tool", answer, json.dumps(RIGHT[right]))

    with pytest.raises(WrongAnswer, match="expected"):
        check("tool", answer, json.dumps(RIGHT[right] | {member: wrong}))
    with pytest.raises(WrongAnswer, match=f"missing required field `{member}`"):
        check(
            "tool",
            answer,
            json.dumps({key: RIGHT[right][key] for key in RIGHT[right].keys() - {member}}),
        )


RIGHT: dict[str, dict[str, object]] = {
    "search": {"total_found": 2251, "products": [{}] * 10, "top10_popular_ids": [1] * 10},
    "cart": {"user_id": "u", "cart": {"items": [{}]}, "recent_history": [{}] * 5},
    "order": {"user_id": "u", "status": "confirmed", "total": 24.63, "items_count": 2},
}


def test_the_api_sends_the_bytes_of_the_original() -> None:
    search = api_answer(
        "/products/search?category=Electronics&min_price=50.0&max_price=500.0&limit=10", b""
    )
    product = api_answer("/products/8", b"")
    cart = json.dumps({"user_id": "user-00001", "items": ITEMS}).encode()
    order = api_answer("/cart/calculate", cart)

    assert search is not None
    assert json.loads(search)["total_found"] == 2251
    assert product is not None
    assert order is not None
    assert json.loads(order)["total"] == 24.63
    # The sizes were measured with the original's API.
    assert [len(search), len(product), len(order)] == [2574, 223, 141]


@pytest.mark.parametrize(
    "received",
    [
        b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\nMcp-Session-Id: aB\r\n\r\n{"jsonrpc":"2.0"}',
        b"HTTP/1.1 200 OK\r\nmcp-session-id:aB\r\nTransfer-Encoding: chunked\r\n\r\n"
        b'8\r\n{"jsonrp\r\n9\r\nc":"2.0"}\r\n0\r\n\r\n',
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nmcp-session-id: aB\r\n"
        b"transfer-encoding: chunked\r\n\r\n"
        b'2e\r\nid: 1\n\nevent: message\ndata: {"jsonrpc":"2.0"}\n\r\n0\r\n\r\n',
    ],
    ids=["length", "chunked", "stream"],
)
def test_an_answer_is_read_once_it_is_complete(received: bytes) -> None:
    assert {read_answer(received[:end]) for end in range(len(received))} == {None}

    answer = read_answer(received)

    assert answer is not None
    assert (answer.status, answer.session) == (200, b"aB")
    assert message_in(answer) == b'{"jsonrpc":"2.0"}'


def test_the_figures_are_written_as_json_and_between_the_markers_of_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- figures: mcp-use -->\nold\n<!-- end -->\nafter\n")
    monkeypatch.setattr(report, "PAGE", page)
    monkeypatch.setattr(report, "FIGURES", tmp_path / "figures")
    times = {"tools/list": [1.0, 2.0, 3.0]}
    rows = [
        Row(name, value, entry, "2025-06-18", 10.0, 11.0, 30.0, 0.5, times)
        for name, entry, value in [("Theirs", "typescript", 500.0), ("Ours", "ours", 100.0)]
    ]

    report.write(ECHO_WORKLOAD, ECHO_WORKLOAD.entries, rows, rounds=5, seconds=4.0, load=0.5)

    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("<!-- end -->\nafter\n")
    assert "old" not in text
    assert "| Ours | 100 | 5.0 | 10 | 11 | 30 |" in text
    written = json.loads((tmp_path / "figures" / "mcp-use.json").read_text())
    assert [(row["name"], row["value"]) for row in written["rows"]] == [
        ("Theirs", 500.0),
        ("Ours", 100.0),
    ]
    assert written["versions"]["ours"]
    for theme in ("light", "dark"):
        assert "Ours" in (tmp_path / "figures" / f"mcp-use-{theme}.svg").read_text()


def test_the_page_and_its_pictures_show_the_figures_of_every_server() -> None:
    files = report.drawn()

    stale = [path.name for path, text in files.items() if path.read_text() != text]
    assert stale == [], "run: python -m bench public --redraw"
    page = files[report.PAGE]
    entries = [entry for workload in (SHOP_WORKLOAD, ECHO_WORKLOAD) for entry in workload.entries]
    assert [entry.title for entry in entries if f"| {entry.title} |" not in page] == []


def test_the_options_name_the_servers_and_smoke_cannot_write() -> None:
    assert "mcp-lite" in _run("--only", "nobody").stderr
    assert "--smoke measures nothing" in _run("--write").stderr
