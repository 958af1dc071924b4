"""`lint --fix` repairs recorded replies."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import pytest

from answerback.rules.lint.rewriting import CannotRewrite, rewrite_file

from .recorded_replies import GOOD, HIDDEN, NULLS, frame

Run = Callable[..., Any]


def test_fix_repairs_in_place_and_leaves_all_other_bytes(answerback: Run, recorded: Run) -> None:
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


def test_fix_repairs_a_reply_inside_a_frame_in_a_log_line(answerback: Run, recorded: Run) -> None:
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
    ("error_object", "message"),
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
def test_fix_replaces_an_error_object_in_text_by_its_message(
    answerback: Run, recorded: Run, error_object: dict[str, Any], message: str | None
) -> None:
    text = json.dumps(error_object)
    file = recorded(
        json.dumps({"content": [{"type": "text", "text": text}], "isError": False}),
        json.dumps(
            {"content": [{"type": "text", "text": text}], "structuredContent": error_object}
        ),
    )

    done = answerback("lint", "--fix", "replies.jsonl")

    message = message or "NOT_FOUND: no such city"
    first, second = (json.loads(line) for line in file.read_text().splitlines())
    assert first == {"content": [{"type": "text", "text": message}], "isError": True}
    assert second["content"] == first["content"]
    assert second["isError"] is True
    assert ("structuredContent" in second) == (error_object == {"success": False})
    assert done.exit == 0


def test_the_number_of_repairable_findings_is_what_fix_repairs(
    answerback: Run, recorded: Run
) -> None:
    image = {"type": "image", "data": "not base64!", "mimeType": "image/png"}
    empty = '{"content":[],"structuredContent":{"a":1}}'
    recorded(
        json.dumps({"content": [image]}),
        json.dumps({"content": [{**image, "data": "_-_-"}]}),
        json.dumps({"message": json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})}),
        json.dumps({"message": empty}),
        empty,
    )

    checked = answerback("lint", "replies.jsonl")
    fixed = answerback("lint", "--fix", "replies.jsonl")

    assert checked.stderr.endswith("2 can be repaired with --fix\n")
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


def test_fix_refuses_a_read_only_file_unless_forced(answerback: Run, recorded: Run) -> None:
    file = recorded(NULLS)
    file.chmod(0o444)

    refused = answerback("lint", "--fix", "replies.jsonl")

    assert refused.exit == 2
    assert refused.stderr == (
        "error: replies.jsonl is read-only, and was not repaired; --force repairs it anyway\n"
    )
    assert file.read_text() == f"{NULLS}\n"

    forced = answerback("lint", "--fix", "--force", "replies.jsonl")

    assert forced.exit == 0
    assert "null" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o444


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
def test_fix_refuses_a_file_of_another_user_unless_forced(answerback: Run, recorded: Run) -> None:
    file = recorded(NULLS)
    os.chown(file, 1234, 1234)

    refused = answerback("lint", "--fix", "replies.jsonl")

    assert refused.exit == 2
    assert "belongs to another user" in refused.stderr
    assert file.read_text() == f"{NULLS}\n"

    forced = answerback("lint", "--fix", "--force", "replies.jsonl")

    assert forced.exit == 0
    assert "null" not in file.read_text()
    assert (file.stat().st_uid, file.stat().st_gid) == (1234, 1234)


def test_fix_keeps_the_hard_links_of_a_file(answerback: Run, recorded: Run) -> None:
    file = recorded(GOOD, NULLS, GOOD)
    other = file.with_name("other.jsonl")
    other.hardlink_to(file)

    done = answerback("lint", "--fix", "replies.jsonl")

    assert done.exit == 0
    assert other.samefile(file)
    assert "null" not in other.read_text()
    assert other.read_text().endswith(f"{GOOD}\n")
    assert sorted(os.listdir(file.parent)) == ["other.jsonl", "replies.jsonl"]


def test_fix_leaves_a_file_alone_that_was_written_to_meanwhile(tmp_path: Path) -> None:
    file = tmp_path / "replies.jsonl"
    file.write_text(f"{NULLS}\n")

    def write(copy: IO[bytes]) -> bool:
        with file.open("a") as server:
            server.write(f"{GOOD}\n")
        copy.write(b"repaired")
        return True

    with file.open("rb") as source, pytest.raises(CannotRewrite, match="while it was being read"):
        rewrite_file(str(file), source, write)

    assert file.read_text() == f"{NULLS}\n{GOOD}\n"
    assert os.listdir(tmp_path) == ["replies.jsonl"]
