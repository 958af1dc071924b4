"""`lint` reads recorded replies in every layout, and checks them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .recorded_replies import GOOD, HIDDEN, NO_CONTENT, NULLS, SCHEMA, frame

Run = Callable[..., Any]


def test_findings_have_line_numbers_and_errors_exit_with_1(answerback: Run, recorded: Run) -> None:
    recorded(GOOD, HIDDEN, "", NO_CONTENT)

    done = answerback("lint", "replies.jsonl")

    assert done.exit == 1
    assert done.stdout.splitlines() == [
        "replies.jsonl:2: warning AB201 error-hidden-in-text: "
        "a failure without isError: 'Error: 401 Unauthorized' (/content/0/text)",
        "replies.jsonl:4: error AB102 missing-content: Missing content array",
        "replies.jsonl:4: error AB105 missing-timestamp: Missing timestamp",
    ]
    assert done.stderr == "2 errors, 1 warning in 3 replies; 2 can be repaired with --fix\n"


def test_warnings_alone_exit_with_0(answerback: Run, recorded: Run) -> None:
    recorded(HIDDEN)

    assert answerback("lint", "replies.jsonl").exit == 0


def test_valid_replies_are_only_counted(answerback: Run, recorded: Run) -> None:
    recorded(GOOD, GOOD)

    done = answerback("lint", "replies.jsonl")

    assert (done.stdout, done.stderr, done.exit) == ("", "no findings in 2 replies\n", 0)


def test_a_file_with_messages_but_no_replies_is_reported_and_exits_with_0(
    answerback: Run, recorded: Run
) -> None:
    recorded(frame(id=1, method="ping"), "some words")

    done = answerback("lint", "replies.jsonl")

    assert (done.stderr, done.exit) == ("no replies found among 1 message\n", 0)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty, so nothing was checked"),
        (b" \r\n\n", "is empty, so nothing was checked"),
        (GOOD.encode("utf-16"), "is UTF-16 or binary, so nothing was checked; save it as UTF-8"),
        (
            b'<!DOCTYPE html>\n<script>x = {"a":1}</script>\n',
            "is HTML or XML, so nothing was checked; lint reads JSON",
        ),
        (b"hello\n", "contains no replies, so nothing was checked; lint reads JSON"),
        (
            b'12:00 GET {"path":"/x","ms":3}\n',
            "contains no replies, so nothing was checked; lint reads JSON",
        ),
    ],
)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_file_with_nothing_to_check_is_an_error_and_exits_with_2(
    answerback: Run, tmp_path: Path, content: bytes, message: str, form: str
) -> None:
    (tmp_path / "given").write_bytes(content)

    done = answerback("lint", "--format", form, "given")

    assert (done.stdout, done.stderr, done.exit) == ("", f"error: given {message}\n", 2)


def test_the_other_files_are_checked_after_an_unreadable_one(
    answerback: Run, recorded: Run
) -> None:
    recorded(NO_CONTENT)
    recorded(name="empty.jsonl")

    done = answerback("lint", "--format", "sarif", "nothing.jsonl", "empty.jsonl", "replies.jsonl")

    assert len(json.loads(done.stdout)["runs"][0]["results"]) == 2
    assert [line.split()[:2] for line in done.stderr.splitlines()] == [
        ["error:", "cannot"],
        ["error:", "empty.jsonl"],
    ]
    assert done.exit == 2


def test_malformed_json_is_a_finding_that_can_be_ignored(answerback: Run, recorded: Run) -> None:
    recorded(GOOD, '{"content":[}')

    checked = answerback("lint", "replies.jsonl")
    ignored = answerback("lint", "--ignore", "AB100", "replies.jsonl")
    others = answerback("lint", "--select", "AB2", "replies.jsonl")

    assert checked.stdout == "replies.jsonl:2: error AB100 not-json: this is not JSON\n"
    assert checked.exit == 1
    assert (ignored.stdout, ignored.exit) == ("", 0)
    assert (others.stdout, others.exit) == ("", 0)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_with_a_byte_order_mark_and_crlf_is_read(
    answerback: Run, tmp_path: Path, indent: int | None, end: str
) -> None:
    text = json.dumps(json.loads(HIDDEN), indent=indent) + "\n" + GOOD + "\n"
    (tmp_path / "replies.json").write_bytes(b"\xef\xbb\xbf" + text.replace("\n", end).encode())

    done = answerback("lint", "replies.json")

    assert "AB201" in done.stdout
    assert done.stderr == "1 warning in 2 replies\n"


def test_every_message_in_a_line_of_a_log_is_found(answerback: Run, recorded: Run) -> None:
    recorded(
        f'a{{"id":1}}b {HIDDEN}',
        f"c{{x {HIDDEN} y}}",
        f"two: {HIDDEN}{HIDDEN} and {GOOD}.",
        '12:00 GET {"path":"/x","ms":3}',
        "12:01 function() {",
        name="mcp.log",
    )

    done = answerback("lint", "mcp.log")

    assert [line.split(":")[1] for line in done.stdout.splitlines()] == ["1", "2", "3", "3"]
    assert done.stderr == "4 warnings in 5 replies\n"


def test_a_truncated_message_in_a_log_is_a_finding(answerback: Run, recorded: Run) -> None:
    cut = '12:00 <- {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"},{"ty'
    recorded(cut, f"12:01 <- {HIDDEN}", name="mcp.log")

    done = answerback("lint", "mcp.log")

    assert [line.split()[2] for line in done.stdout.splitlines()] == ["AB100", "AB201"]


def test_an_indented_message_in_a_log_is_read(answerback: Run, recorded: Run) -> None:
    recorded(f"12:00 response: {json.dumps(json.loads(HIDDEN), indent=2)}", "12:01 done", HIDDEN)

    done = answerback("lint", "replies.jsonl")

    assert [line.split(":")[1] for line in done.stdout.splitlines()] == ["5", "10"]


def test_stdin_is_read_like_a_file(answerback: Run) -> None:
    done = answerback("lint", "-", stdin=NO_CONTENT.encode())

    assert done.stdout.startswith("stdin:1: error AB102")


def test_findings_in_an_indented_document_have_the_line_of_the_member(
    answerback: Run, recorded: Run
) -> None:
    whole = [json.loads(GOOD), json.loads(NULLS)]
    file = recorded(json.dumps(whole, indent=2), name="replies.json")

    done = answerback("lint", "replies.json")

    lines = file.read_text().splitlines()
    numbers = [int(line.split(":")[1]) for line in done.stdout.splitlines()]
    assert [lines[number - 1].strip() for number in numbers] == [
        '"structuredContent": null',
        '"_meta": null',
    ]
    assert "(/1/structuredContent)" in done.stdout


def test_version_and_schemas_are_taken_from_a_recorded_conversation(
    answerback: Run, recorded: Run
) -> None:
    tool = {"name": "sum", "inputSchema": {"type": "object"}, "outputSchema": SCHEMA}
    bad = {"content": [{"type": "text", "text": "{}"}], "structuredContent": {}}
    recorded(
        frame(id=1, method="initialize"),
        frame(id=1, result={"protocolVersion": "2025-06-18"}),
        frame(id=2, method="tools/list"),
        frame(id=2, result={"tools": [tool]}),
        frame(id=3, method="tools/call", params={"name": "sum"}),
        frame(id=3, result=bad),
        frame(id=4, method="tools/call", params={"name": "sum"}),
        frame(id=4, error={"code": -32603, "message": "the sum failed"}),
    )

    done = answerback("lint", "replies.jsonl")

    assert [line.split()[2] for line in done.stdout.splitlines()] == ["AB320", "AB206"]
    assert '"total" is a required property (/result/structuredContent)' in done.stdout


def test_a_log_with_messages_in_its_lines_is_read(answerback: Run, recorded: Run) -> None:
    recorded(
        "2026-01-31T12:00:00Z [weather] [info] Server started",
        f"2026-01-31T12:00:01Z [weather] [info] Message from server: "
        f"{frame(id=1, result=json.loads(HIDDEN))} {{ metadata: undefined }}",
        name="mcp.log",
    )

    assert answerback("lint", "mcp.log").stdout.startswith("mcp.log:2: warning AB201")


@pytest.mark.parametrize("more", [(), ("--fix",), ("--format", "sarif")])
def test_an_interrupted_run_exits_at_once_and_leaves_no_files(
    more: tuple[str, ...], tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    process = subprocess.Popen(
        [sys.executable, "-m", "answerback", "lint", *more, "-", "pipe"],
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    process.stdin.close()
    # open() returns when lint has opened the pipe; from then on lint waits for a line.
    with (tmp_path / "pipe").open("wb"):
        process.send_signal(signal.SIGINT)
        process.stdin = None
        _, stderr = process.communicate(timeout=60)

    assert process.returncode == 130
    assert b"Traceback" not in stderr
    assert os.listdir(tmp_path) == ["pipe"]


def test_rules_are_selected_and_ignored(answerback: Run, recorded: Run) -> None:
    recorded(HIDDEN, NO_CONTENT)

    some = answerback(
        "lint", "--select", "AB1,AB201", "--ignore", "missing-content", "replies.jsonl"
    )

    assert [line.split()[2] for line in some.stdout.splitlines()] == ["AB201", "AB105"]


def test_selecting_an_unknown_rule_is_an_error(answerback: Run, recorded: Run) -> None:
    recorded(GOOD)

    done = answerback("lint", "--select", "AB999", "replies.jsonl")

    assert done.exit == 2
    assert done.stderr.startswith("error: no rule is called 'AB999'; did you mean ")


def test_a_missing_file_is_an_error(answerback: Run) -> None:
    done = answerback("lint", "nothing.jsonl")

    assert done.exit == 2
    assert done.stderr == "error: cannot read nothing.jsonl: No such file or directory\n"


def test_the_dialect_option_overrides_detection(answerback: Run, recorded: Run) -> None:
    recorded('{"ok":true}')

    done = answerback("lint", "--dialect", "envelope", "replies.jsonl")

    assert [line.split()[2] for line in done.stdout.splitlines()] == ["AB101", "AB102", "AB105"]


@pytest.mark.parametrize("stream", [False, True])
def test_a_har_file_is_read_as_a_conversation(answerback: Run, recorded: Run, stream: bool) -> None:
    def entry(method: str, answer: Any, **params: Any) -> dict[str, Any]:
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "result": answer})
        if stream:
            text = f'event: message\ndata: {{"jsonrpc":"2.0"}}\n\nevent: message\ndata: {text}\n\n'
        sent = {
            "method": "POST",
            "url": "https://x.org/mcp",
            "postData": {"text": json.dumps(asked)},
        }
        return {"request": sent, "response": {"status": 200, "content": {"text": text}}}

    page = {"request": {"method": "GET"}, "response": {"status": 200, "content": {"text": "<p>"}}}
    tool = {"name": "count", "inputSchema": {"type": "object"}, "outputSchema": SCHEMA}
    entries = [
        page,
        entry("tools/list", {"tools": [tool]}),
        entry("tools/call", {"content": [], "structuredContent": {}}, name="count"),
    ]
    recorded(json.dumps({"log": {"version": "1.2", "entries": entries}}), name="proxy.har")

    done = answerback("lint", "--format", "json", "proxy.har")

    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {(each["rule"], each["pointer"]) for each in found} == {
        ("AB303", "/log/entries/2/response/result/content"),
        ("AB320", "/log/entries/2/response/result/structuredContent"),
    }


@pytest.mark.parametrize("missing", ["rich", "jsonschema_rs"])
def test_lint_works_without_its_optional_dependencies(
    missing: str, recorded: Run, tmp_path: Path
) -> None:
    tool = {"name": "sum", "inputSchema": {"type": "object"}, "outputSchema": SCHEMA}
    bad = {"content": "{}", "structuredContent": {}}
    recorded(
        frame(id=2, result={"tools": [tool]}),
        frame(id=3, method="tools/call", params={"name": "sum"}),
        frame(id=3, result=bad),
    )
    program = f"import sys; sys.modules[{missing!r}] = None\nfrom answerback.cli import main\n"
    program += "sys.exit(main(['lint', 'replies.jsonl']))"

    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert "AB102" in done.stdout
    assert ("answerback[lint]" in done.stderr) == (missing == "jsonschema_rs")


# On Linux, getrusage includes the memory of the process before its exec, so VmHWM is read.
_MEASURED = """
import resource, sys
from pathlib import Path
from answerback.cli import main
status = main(["lint", sys.argv[1]])
if (status_file := Path("/proc/self/status")).exists():
    peak = next(line for line in status_file.read_text().splitlines() if line.startswith("VmHWM"))
    print(int(peak.split()[1]) // 1024)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 // 1024)
sys.exit(status)
"""


@pytest.mark.parametrize("layout", ["lines", "one line", "indented"])
def test_memory_does_not_grow_with_the_size_of_the_file(layout: str, tmp_path: Path) -> None:
    """Contract: a file of 64 MB takes well under 64 MB, as only one reply is kept at a time."""
    reply = {"content": [{"type": "text", "text": "A line of prose. " * 1_000}], "isError": False}
    item = json.dumps(reply, indent=2 if layout == "indented" else None)
    before, between, after = ("", "\n", "\n") if layout == "lines" else ("[", ", ", "]")
    if layout == "indented":
        before, between, after = "[\n", ",\n", "\n]\n"
    file = tmp_path / "large"
    count = 64 * 1024 * 1024 // len(item)
    with file.open("w") as out:
        out.write(before)
        for number in range(count):
            out.write((between if number else "") + item)
        out.write(after)

    done = subprocess.run(
        [sys.executable, "-c", _MEASURED, str(file)], capture_output=True, text=True, check=False
    )

    assert done.returncode == 0
    assert done.stderr == f"no findings in {count:,} replies\n"
    assert int(done.stdout) < 60
