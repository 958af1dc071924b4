"""`lint`: recorded replies in, findings out."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from answerback.rules.catalogue import RULES

Run = Callable[..., Any]

GOOD = '{"content":[{"type":"text","text":"5 °C"}]}'
HIDDEN = '{"content":[{"type":"text","text":"Error: 401 Unauthorized"}]}'
NO_CONTENT = '{"success":true,"data":{"instanceId":"instance-1"}}'
NULLS = '{"content":[{"type":"text","text":"3 rows","_meta":null}],"structuredContent":null}'
SCHEMA = {"type": "object", "required": ["total"]}


@pytest.fixture
def recorded(tmp_path: Path) -> Callable[..., Path]:
    """A file of these lines."""

    def write(*lines: str, name: str = "replies.jsonl") -> Path:
        file = tmp_path / name
        file.write_text("".join(f"{line}\n" for line in lines))
        return file

    return write


def frame(**members: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", **members})


def test_findings_are_told_with_their_lines_and_errors_end_with_1(
    answerback: Run, recorded: Run
) -> None:
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


def test_warnings_alone_end_with_0(answerback: Run, recorded: Run) -> None:
    recorded(HIDDEN)

    assert answerback("lint", "replies.jsonl").exit == 0


def test_good_replies_are_not_mentioned(answerback: Run, recorded: Run) -> None:
    recorded(GOOD, GOOD)

    done = answerback("lint", "replies.jsonl")

    assert (done.stdout, done.stderr, done.exit) == ("", "no findings in 2 replies\n", 0)


def test_a_file_without_replies_is_told(answerback: Run, recorded: Run) -> None:
    recorded(frame(id=1, method="ping"), "some words")

    done = answerback("lint", "replies.jsonl")

    assert (done.stderr, done.exit) == ("no replies found among 1 message\n", 0)


@pytest.mark.parametrize(
    ("held", "said"),
    [
        (b"", "is empty, and nothing was checked"),
        (b" \r\n\n", "is empty, and nothing was checked"),
        (GOOD.encode("utf-16"), "is UTF-16 or binary, and nothing was checked; save it as UTF-8"),
        (
            b'<!DOCTYPE html>\n<script>x = {"a":1}</script>\n',
            "is HTML or XML, and nothing was checked; lint reads JSON",
        ),
        (b"hello\n", "has no replies in it, and nothing was checked; lint reads JSON"),
        (
            b'12:00 GET {"path":"/x","ms":3}\n',
            "has no replies in it, and nothing was checked; lint reads JSON",
        ),
    ],
)
@pytest.mark.parametrize("form", ["text", "json", "github"])
def test_where_there_is_nothing_to_check_that_is_told_and_ends_with_2(
    answerback: Run, tmp_path: Path, held: bytes, said: str, form: str
) -> None:
    (tmp_path / "given").write_bytes(held)

    done = answerback("lint", "--format", form, "given")

    assert (done.stdout, done.stderr, done.exit) == ("", f"error: given {said}\n", 2)


def test_a_file_that_holds_nothing_does_not_keep_others_from_being_checked(
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


def test_what_is_not_json_is_told_unless_that_is_ignored(answerback: Run, recorded: Run) -> None:
    recorded(GOOD, '{"content":[}')

    told = answerback("lint", "replies.jsonl")
    ignored = answerback("lint", "--ignore", "AB100", "replies.jsonl")
    others = answerback("lint", "--select", "AB2", "replies.jsonl")

    assert told.stdout == "replies.jsonl:2: error AB100 not-json: this is not JSON\n"
    assert told.exit == 1
    assert (ignored.stdout, ignored.exit) == ("", 0)
    assert (others.stdout, others.exit) == ("", 0)


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_file_from_windows_is_read_as_any_other(
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


def test_a_message_that_is_cut_off_in_a_log_is_told(answerback: Run, recorded: Run) -> None:
    cut = '12:00 <- {"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"},{"ty'
    recorded(cut, f"12:01 <- {HIDDEN}", name="mcp.log")

    done = answerback("lint", "mcp.log")

    assert [line.split()[2] for line in done.stdout.splitlines()] == ["AB100", "AB201"]


def test_a_message_that_is_indented_in_a_log_is_read(answerback: Run, recorded: Run) -> None:
    recorded(f"12:00 response: {json.dumps(json.loads(HIDDEN), indent=2)}", "12:01 done", HIDDEN)

    done = answerback("lint", "replies.jsonl")

    assert [line.split(":")[1] for line in done.stdout.splitlines()] == ["5", "10"]


def test_stdin_is_read_as_a_file(answerback: Run) -> None:
    done = answerback("lint", "-", stdin=NO_CONTENT.encode())

    assert done.stdout.startswith("stdin:1: error AB102")


def test_an_indented_document_is_told_by_the_lines_in_it(answerback: Run, recorded: Run) -> None:
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


def test_a_conversation_brings_version_and_schemas_with_it(answerback: Run, recorded: Run) -> None:
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


def test_json_has_one_object_for_each_finding_and_line(answerback: Run, recorded: Run) -> None:
    recorded(GOOD, HIDDEN)

    done = answerback("lint", "--format", "json", "replies.jsonl")

    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {
            "file": "replies.jsonl",
            "line": 2,
            "rule": "AB201",
            "name": "error-hidden-in-text",
            "severity": "warning",
            "pointer": "/content/0/text",
            "message": "a failure without isError: 'Error: 401 Unauthorized'",
            "hint": "set isError: true, so that the model and its host know that the call failed",
        }
    ]


@pytest.mark.parametrize("lines", [(GOOD,), (HIDDEN, NO_CONTENT)])
def test_sarif_names_every_rule_and_every_finding(
    answerback: Run, recorded: Run, lines: tuple[str, ...]
) -> None:
    recorded(*lines)

    done = answerback("lint", "--format", "sarif", "replies.jsonl")

    (run,) = json.loads(done.stdout)["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert len(run["results"]) == (0 if lines == (GOOD,) else 3)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "replies.jsonl"
        assert place["region"]["startLine"] in (1, 2)


def test_sarif_speaks_in_sentences(answerback: Run, recorded: Run) -> None:
    recorded(HIDDEN, NULLS)

    done = answerback("lint", "--format", "sarif", "replies.jsonl")

    said = [each["message"]["text"] for each in json.loads(done.stdout)["runs"][0]["results"]]
    assert said[0] == (
        "A failure without isError: 'Error: 401 Unauthorized'. "
        "Set isError: true, so that the model and its host know that the call failed."
    )
    assert said[1:] == [
        "structuredContent is null. Leave out a member that has no value.",
        "_meta is null. Leave out a member that has no value.",
    ]


def test_junit_has_a_suite_for_each_file_and_a_failure_for_each_error(
    answerback: Run, recorded: Run
) -> None:
    recorded(HIDDEN, NO_CONTENT, name="a.jsonl")
    recorded(GOOD, name="b.jsonl")

    done = answerback("lint", "--format", "junit", "a.jsonl", "b.jsonl")

    suites = ElementTree.fromstring(done.stdout).findall("testsuite")
    assert [suite.attrib for suite in suites] == [
        {"name": "a.jsonl", "tests": "3", "failures": "2"},
        {"name": "b.jsonl", "tests": "1", "failures": "0"},
    ]
    assert [each.attrib["type"] for each in suites[0].iter("failure")] == ["AB102", "AB105"]


def test_junit_does_not_call_a_file_good_in_which_nothing_was_checked(
    answerback: Run, recorded: Run
) -> None:
    recorded(name="empty.jsonl")

    done = answerback("lint", "--format", "junit", "empty.jsonl")

    (case,) = ElementTree.fromstring(done.stdout).iter("testcase")
    assert [each.tag for each in case] == ["skipped"]
    assert done.exit == 2


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_what_cannot_be_written_is_told(recorded: Run, tmp_path: Path) -> None:
    recorded(NO_CONTENT)

    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "answerback", "lint", "replies.jsonl"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert done.returncode != 0
    assert b"No space left on device" in done.stderr
    assert b"cannot read" not in done.stderr


@pytest.mark.parametrize("more", [(), ("--fix",), ("--format", "sarif")])
def test_an_interrupted_run_ends_at_once_and_leaves_nothing_behind(
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
    # Opened once the other end reads: from then on it waits for a line that does not come.
    with (tmp_path / "pipe").open("wb"):
        process.send_signal(signal.SIGINT)
        process.stdin = None
        _, told = process.communicate(timeout=20)

    assert process.returncode == 130
    assert b"Traceback" not in told
    assert os.listdir(tmp_path) == ["pipe"]


def test_github_gets_commands(answerback: Run, recorded: Run) -> None:
    recorded(NO_CONTENT)

    done = answerback("lint", "--format", "github", "replies.jsonl")

    assert done.stdout.splitlines()[0] == (
        "::error file=replies.jsonl,line=1,title=AB102 missing-content::"
        "Missing content array (Response must include a content array)"
    )


def test_rules_are_selected_and_ignored(answerback: Run, recorded: Run) -> None:
    recorded(HIDDEN, NO_CONTENT)

    some = answerback(
        "lint", "--select", "AB1,AB201", "--ignore", "missing-content", "replies.jsonl"
    )

    assert [line.split()[2] for line in some.stdout.splitlines()] == ["AB201", "AB105"]


def test_a_rule_that_there_is_not_is_refused(answerback: Run, recorded: Run) -> None:
    recorded(GOOD)

    done = answerback("lint", "--select", "AB999", "replies.jsonl")

    assert done.exit == 2
    assert done.stderr.startswith("error: no rule is called 'AB999'; did you mean ")


def test_a_file_that_cannot_be_read_is_told(answerback: Run) -> None:
    done = answerback("lint", "nothing.jsonl")

    assert done.exit == 2
    assert done.stderr == "error: cannot read nothing.jsonl: No such file or directory\n"


def test_the_dialect_can_be_given(answerback: Run, recorded: Run) -> None:
    recorded('{"ok":true}')

    done = answerback("lint", "--dialect", "envelope", "replies.jsonl")

    assert [line.split()[2] for line in done.stdout.splitlines()] == ["AB101", "AB102", "AB105"]


def test_fix_repairs_in_place_and_leaves_the_rest_byte_for_byte(
    answerback: Run, recorded: Run
) -> None:
    odd = '{"content" : [ {"type":"text","text":"kept \\u00e9"} ]}'
    file = recorded("# a comment", odd, NULLS, "")
    file.chmod(0o640)

    done = answerback("lint", "--fix", "replies.jsonl")

    assert file.read_text().split("\n") == [
        "# a comment",
        odd,
        '{"content":[{"type":"text","text":"3 rows"}]}',
        "",
        "",
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert done.exit == 0
    assert done.stderr == "no findings in 2 replies; 2 repaired\n"
    assert os.listdir(file.parent) == ["replies.jsonl"]


def test_fix_repairs_a_reply_in_its_frame_and_in_its_log(answerback: Run, recorded: Run) -> None:
    line = f"12:00 <- {frame(id=1, result=json.loads(NULLS))} [end]"
    file = recorded(line, name="mcp.log")

    answerback("lint", "--fix", "mcp.log")

    kept = file.read_text()
    assert kept.startswith("12:00 <- {")
    assert kept.endswith("} [end]\n")
    assert "null" not in kept


def test_fix_keeps_a_document_indented(answerback: Run, recorded: Run) -> None:
    file = recorded(json.dumps(json.loads(NULLS), indent=4), name="reply.json")

    answerback("lint", "--fix", "reply.json")

    fixed = {"content": [{"type": "text", "text": "3 rows"}]}
    assert file.read_text() == json.dumps(fixed, indent=4) + "\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("indent", [2, 4, "\t"])
def test_fix_changes_only_the_lines_that_were_wrong(
    answerback: Run, tmp_path: Path, indent: Any, end: str
) -> None:
    whole = [json.loads(GOOD), json.loads(NULLS), {"content": [], "structuredContent": {"a": 1.50}}]
    before = json.dumps(whole, indent=indent, ensure_ascii=False).replace("\n", end)
    file = tmp_path / "replies.json"
    file.write_bytes(before.encode())

    answerback("lint", "--fix", "replies.json")

    fixed = [
        whole[0],
        {"content": [{"type": "text", "text": "3 rows"}]},
        {**whole[2], "content": [{"type": "text", "text": '{"a":1.5}'}]},
    ]
    after = json.dumps(fixed, indent=indent, ensure_ascii=False).replace("\n", end)
    assert file.read_bytes() == after.encode()


@pytest.mark.parametrize(
    ("told", "said"),
    [
        ({"success": False, "error": {"code": "NOT_FOUND", "message": "no such city"}}, None),
        ({"success": False, "error": "no such city", "code": "NOT_FOUND"}, None),
        ({"status": "error", "message": "no such city"}, "no such city"),
        ({"errors": [{"message": "no a"}, {"message": "no b"}], "data": None}, "no a; no b"),
        (
            {"ok": False, "error": {"message": "too many", "details": {"wait": 3}}},
            'too many ({"wait":3})',
        ),
        (
            {"success": False, "error": "too many", "retryable": True, "stack": "at x.js:3"},
            'too many ({"retryable":true})',
        ),
        (
            {"error": {"code": 401, "message": "bad key", "type": "auth"}},
            '401: bad key ({"type":"auth"})',
        ),
        ({"detail": "Not Found"}, "Not Found"),
        ({"detail": [{"loc": ["body", "x"], "msg": "required"}]}, "body.x: required"),
        ({"errors": [{"status": "404", "title": "Not Found"}]}, "Not Found"),
        ({"ok": False, "error_code": 400, "description": "no chat"}, "400: no chat"),
        ({"errorMessages": ["no issue"], "errors": {}}, "no issue"),
        ({"__type": "NotFoundException", "message": "no row"}, "NotFoundException: no row"),
        ({"result": {"success": False, "error": "no such city"}}, "no such city"),
        ({"success": False}, '{"success": false}'),
    ],
)
def test_fix_says_in_words_what_was_said_in_json(
    answerback: Run, recorded: Run, told: dict[str, Any], said: str | None
) -> None:
    text = json.dumps(told)
    file = recorded(
        json.dumps({"content": [{"type": "text", "text": text}], "isError": False}),
        json.dumps({"content": [{"type": "text", "text": text}], "structuredContent": told}),
    )

    done = answerback("lint", "--fix", "replies.jsonl")

    said = said or "NOT_FOUND: no such city"
    first, second = (json.loads(line) for line in file.read_text().splitlines())
    assert first == {"content": [{"type": "text", "text": said}], "isError": True}
    assert second["content"] == first["content"]
    assert second["isError"] is True
    assert ("structuredContent" in second) == (told == {"success": False})
    assert done.exit == 0


@pytest.mark.parametrize("stream", [False, True])
def test_a_har_file_that_a_proxy_exported_is_a_conversation(
    answerback: Run, recorded: Run, stream: bool
) -> None:
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


def test_no_more_is_said_to_be_repairable_than_fix_repairs(answerback: Run, recorded: Run) -> None:
    image = {"type": "image", "data": "not base64!", "mimeType": "image/png"}
    empty = '{"content":[],"structuredContent":{"a":1}}'
    recorded(
        json.dumps({"content": [image]}),
        json.dumps({"content": [{**image, "data": "_-_-"}]}),
        json.dumps({"message": json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})}),
        json.dumps({"message": empty}),
        empty,
    )

    told = answerback("lint", "replies.jsonl")
    fixed = answerback("lint", "--fix", "replies.jsonl")

    assert told.stderr.endswith("2 can be repaired with --fix\n")
    assert fixed.stderr.endswith("2 repaired\n")


def test_fix_does_not_touch_a_file_with_nothing_to_repair(answerback: Run, recorded: Run) -> None:
    file = recorded(GOOD, HIDDEN)
    before = file.stat()

    answerback("lint", "--fix", "replies.jsonl")

    assert (file.stat().st_ino, file.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_fix_of_stdin_writes_the_repaired_replies_to_stdout(answerback: Run) -> None:
    done = answerback("lint", "--fix", "-", stdin=f"{HIDDEN}\n{NULLS}\n".encode())

    assert done.stdout == f'{HIDDEN}\n{{"content":[{{"type":"text","text":"3 rows"}}]}}\n'
    assert "AB201" in done.stderr


def test_only_selected_rules_are_repaired(answerback: Run, recorded: Run) -> None:
    file = recorded(NULLS)

    answerback("lint", "--fix", "--ignore", "AB305", "replies.jsonl")

    assert file.read_text() == f"{NULLS}\n"


def test_on_a_terminal_the_offending_line_is_shown_with_a_mark(
    on_a_terminal: Run, recorded: Run
) -> None:
    recorded(GOOD, HIDDEN)

    done = on_a_terminal("lint", "replies.jsonl")

    plain = _without_colours(done.stdout).splitlines()
    assert plain[0] == "replies.jsonl:2 warning AB201 error-hidden-in-text"
    shown, mark = plain[2], plain[3]
    assert shown[mark.index("^") : mark.rindex("^") + 1] == '"Error: 401 Unauthorized"'
    assert plain[-1] == "1 warning in 2 replies"


def test_on_a_terminal_what_was_recorded_cannot_move_the_cursor(
    on_a_terminal: Run, recorded: Run
) -> None:
    recorded(json.dumps({"content": [{"type": "text", "text": "Error: \x1b[2J\x07 no"}]}))

    assert "\x1b[2J" not in on_a_terminal("lint", "replies.jsonl").stdout


def test_a_bar_shows_how_far_a_long_input_is(on_a_terminal: Run, tmp_path: Path) -> None:
    line = json.dumps({"content": [{"type": "text", "text": "A line of prose. " * 5_000}]}) + "\n"
    (tmp_path / "long.jsonl").write_text(line * 260)

    seen = on_a_terminal("lint", "long.jsonl").stdout

    assert "long.jsonl ━" in _without_colours(seen)
    assert _without_colours(seen).rstrip().endswith("no findings in 260 replies")


@pytest.mark.parametrize("missing", ["rich", "jsonschema_rs"])
def test_without_the_extra_lint_does_what_it_can(
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


# Linux counts what a process had before its exec among what getrusage tells.
_MEASURED = """
import resource, sys
from pathlib import Path
from answerback.cli import main
status = main(["lint", sys.argv[1]])
if (told := Path("/proc/self/status")).exists():
    peak = next(line for line in told.read_text().splitlines() if line.startswith("VmHWM"))
    print(int(peak.split()[1]) // 1024)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024 // 1024)
sys.exit(status)
"""


@pytest.mark.parametrize("layout", ["lines", "one line", "indented"])
def test_a_large_file_is_read_in_little_memory(layout: str, tmp_path: Path) -> None:
    """64 MB in well under 64 MB: what is kept does not grow with the file."""
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


def _without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text)
