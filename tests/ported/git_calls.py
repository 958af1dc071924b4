"""Calls of the Git server; the later ones need the earlier ones.

`REPO` stands for the folder of the repository, which is the same for both servers in its content.
"""

from __future__ import annotations

from typing import Any

from tests.ported.answers import Compare, ToolCall, same_lines, same_log, same_text

REPO = {"repo_path": "REPO"}


def _call(tool: str, same: Compare, **arguments: Any) -> ToolCall:
    return ToolCall(f"git_{tool}", REPO | arguments, same)


def _fail(tool: str, words: str, **arguments: Any) -> ToolCall:
    return ToolCall(f"git_{tool}", REPO | arguments, words=words)


CALLS = [
    _call("status", same_text),
    _call("log", same_log),
    _call("log", same_log, max_count=1),
    _call("log", same_log, start_timestamp="2024-01-02"),
    _call("log", same_log, end_timestamp="2024-01-02"),
    _call("log", same_log, start_timestamp="2030-01-01"),
    _call("branch", same_text, branch_type="local"),
    _call("branch", same_text, branch_type="all"),
    _call("branch", same_text, branch_type="remote"),
    _call("branch", same_text, branch_type="local", contains="HEAD"),
    _call("branch", same_text, branch_type="local", not_contains="HEAD"),
    _call("diff_unstaged", same_text),
    _call("diff_unstaged", same_text, context_lines=0),
    _call("diff_staged", same_text),
    _call("diff", same_text, target="HEAD~1"),
    _call("diff", same_text, target="other", context_lines=1),
    _call("show", same_lines, revision="HEAD"),
    _call("show", same_lines, revision="HEAD~1"),
    _call("show", same_lines, revision="HEAD:a.txt"),
    _call("show", same_lines, revision="HEAD:"),
    _call("add", same_text, files=["b.txt"]),
    _call("diff_staged", same_text, context_lines=1),
    _call("status", same_text),
    _call("reset", same_text),
    _call("diff_staged", same_text),
    _call("add", same_text, files=["."]),
    _call("create_branch", same_text, branch_name="new"),
    _call("create_branch", same_text, branch_name="from-other", base_branch="other"),
    _call("checkout", same_text, branch_name="new"),
    _call("branch", same_text, branch_type="local"),
    _call("checkout", same_text, branch_name="main"),
    _fail("show", "'nothing'", revision="nothing"),
    _fail("show", "cannot start with '-'", revision="--output=x"),
    _fail("diff", "'nope'", target="nope"),
    _fail("checkout", "'nope'", branch_name="nope"),
    _fail("create_branch", "'other'", branch_name="other"),
    _fail("create_branch", "cannot start with '-'", branch_name="-x"),
    _fail("add", "outside the repository", files=["../out.txt"]),
    _fail("add", "nowhere.txt", files=["nowhere.txt"]),
    _fail("add", "No files", files=[]),
    _fail("branch", "one of 'local', 'remote', 'all'", branch_type="both"),
    _fail("log", "max_count: expected int", max_count="many"),
    ToolCall("git_status", {}, words="repo_path: missing"),
    ToolCall("git_status", {"path": "REPO"}, words="path: unknown argument"),
    ToolCall("git_status", {"repo_path": "REPO/nowhere"}, words="no folder"),
    ToolCall("git_status", {"repo_path": "REPO/folder"}, words="not a Git repository"),
]
