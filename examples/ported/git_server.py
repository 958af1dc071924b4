"""A Git repository: the tools of `mcp-server-git`, written for Answerback.

Run it with `python examples/ported/git_server.py mcp`. The environment variable REPOSITORY limits
it to one repository. It runs the command `git`.
"""

import os
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from answerback import App, Conflict, Forbidden, InvalidInput, NotFound
from answerback.options import Values

app = App("git", version="1.0.0")

ONLY = os.environ.get("REPOSITORY")
# A tool checks the index and then changes it, so that one call runs at a time.
ONE_AT_A_TIME = threading.Lock()

Repository = Annotated[Path, "The folder of the repository."]
Lines = Annotated[int, "The lines of context around each change."]
Since = Annotated[str | None, "Such as 2024-01-15, 2024-01-15T14:30:25 or '2 weeks ago'."]
ERRORS = [NotFound, InvalidInput, Forbidden]


@dataclass
class Commit:
    hash: str
    author: str
    email: str
    date: str
    message: str


@app.tool(read_only=True, idempotent=True, raises=ERRORS, values=Values(structured=False))
def git_status(repo_path: Repository) -> str:
    """Show the status of the working tree."""
    return f"Repository status:\n{_git(repo_path, 'status')}"


@app.tool(read_only=True, idempotent=True, raises=ERRORS, values=Values(structured=False))
def git_diff_unstaged(repo_path: Repository, context_lines: Lines = 3) -> str:
    """Show the changes that are not staged."""
    return f"Unstaged changes:\n{_git(repo_path, 'diff', f'--unified={context_lines}')}"


@app.tool(read_only=True, idempotent=True, raises=ERRORS, values=Values(structured=False))
def git_diff_staged(repo_path: Repository, context_lines: Lines = 3) -> str:
    """Show the changes that are staged for the next commit."""
    return f"Staged changes:\n{_git(repo_path, 'diff', f'--unified={context_lines}', '--cached')}"


@app.tool(read_only=True, idempotent=True, raises=ERRORS, values=Values(structured=False))
def git_diff(
    repo_path: Repository, target: Annotated[str, "A branch or a commit."], context_lines: Lines = 3
) -> str:
    """Show the differences to a branch or a commit."""
    _resolve(repo_path, target)
    return f"Diff with {target}:\n{_git(repo_path, 'diff', f'--unified={context_lines}', target)}"


@app.tool(raises=[*ERRORS, Conflict])
def git_commit(repo_path: Repository, message: Annotated[str, "The message of the commit."]) -> str:
    """Commit the staged changes, and return the hash of the commit."""
    with ONE_AT_A_TIME:
        is_merge = (
            Path(_git(repo_path, "rev-parse", "--absolute-git-dir")) / "MERGE_HEAD"
        ).exists()
        if not is_merge and not _git(repo_path, "diff", "--cached", "--name-only"):
            raise Conflict(
                "No changes are staged for commit",
                code="NOTHING_STAGED",
                hint="stage changes with git_add; git_status shows what is staged",
            )
        _git(repo_path, "commit", f"--message={message}")
        return f"Changes committed successfully with hash {_git(repo_path, 'rev-parse', 'HEAD')}"


@app.tool(idempotent=True, raises=ERRORS)
def git_add(
    repo_path: Repository,
    files: Annotated[list[str], "The paths to stage; ['.'] stages everything."],
) -> str:
    """Stage files."""
    if not files:
        raise InvalidInput("No files were given to stage", hint="['.'] stages everything")
    root = Path(_git(repo_path, "rev-parse", "--show-toplevel")).resolve()
    for each in files:
        if not (root / each).resolve().is_relative_to(root):
            raise Forbidden(f"The path {each!r} is outside the repository {str(root)!r}")
    with ONE_AT_A_TIME:
        before = _git(repo_path, "ls-files", "--stage")
        _git(repo_path, "add", "--", *files)
        if _git(repo_path, "ls-files", "--stage") == before:
            return "No changes were staged: these paths have nothing new."
    return "Files staged successfully"


@app.tool(destructive=True, idempotent=True, raises=ERRORS)
def git_reset(repo_path: Repository) -> str:
    """Unstage all staged changes."""
    with ONE_AT_A_TIME:
        _git(repo_path, "reset", "--quiet")
    return "All staged changes reset"


@app.tool(read_only=True, idempotent=True, raises=ERRORS)
def git_log(
    repo_path: Repository,
    max_count: Annotated[int, "How many commits to show."] = 10,
    start_timestamp: Since = None,
    end_timestamp: Since = None,
) -> list[Commit]:
    """List the newest commits."""
    limits = [f"--max-count={max_count}"]
    limits += [f"--since={start_timestamp}"] if start_timestamp else []
    limits += [f"--until={end_timestamp}"] if end_timestamp else []
    fields = "%H%x00%an%x00%ae%x00%aI%x00%B%x01"
    found = _git(repo_path, "log", f"--format={fields}", *limits)
    rows = [each.strip("\n").split("\0") for each in found.split("\1")]
    return [Commit(*row) for row in rows if len(row) > 1]


@app.tool(raises=[*ERRORS, Conflict])
def git_create_branch(
    repo_path: Repository,
    branch_name: Annotated[str, "The name of the new branch."],
    base_branch: Annotated[str | None, "Where it begins; by default the current branch."] = None,
) -> str:
    """Create a branch."""
    _refuse_option(branch_name)
    base = base_branch or _git(repo_path, "branch", "--show-current")
    if not base:
        raise InvalidInput("No branch is checked out", hint="pass base_branch")
    _resolve(repo_path, base)
    with ONE_AT_A_TIME:
        if _git(repo_path, "branch", "--list", branch_name):
            raise Conflict(f"There is a branch {branch_name!r} already")
        _git(repo_path, "branch", branch_name, base)
    return f"Created branch '{branch_name}' from '{base}'"


@app.tool(raises=[*ERRORS, Conflict])
def git_checkout(repo_path: Repository, branch_name: Annotated[str, "The branch."]) -> str:
    """Switch to a branch."""
    _resolve(repo_path, branch_name)
    with ONE_AT_A_TIME:
        _git(repo_path, "checkout", "--quiet", branch_name)
        branch = _git(repo_path, "branch", "--show-current")
    if branch:
        return f"Switched to branch '{branch}'"
    return f"HEAD is now detached at {_git(repo_path, 'rev-parse', '--short', 'HEAD')}"


@app.tool(read_only=True, idempotent=True, raises=ERRORS, values=Values(structured=False))
def git_show(
    repo_path: Repository,
    revision: Annotated[str, "A commit, or REVISION:PATH for a file or a folder."],
) -> str:
    """Show a commit, a file or a folder."""
    _resolve(repo_path, revision)
    return _git(repo_path, "show", "--date=iso", revision)


@app.tool(read_only=True, idempotent=True, raises=ERRORS, values=Values(structured=False))
def git_branch(
    repo_path: Repository,
    branch_type: Annotated[Literal["local", "remote", "all"], "Which branches to list."],
    contains: Annotated[str | None, "Only branches with this commit."] = None,
    not_contains: Annotated[str | None, "Only branches without this commit."] = None,
) -> str:
    """List branches; the current one has a star."""
    options = {"local": [], "remote": ["-r"], "all": ["-a"]}[branch_type]
    for option, revision in (("--contains", contains), ("--no-contains", not_contains)):
        if revision:
            _resolve(repo_path, revision)
            options += [option, revision]
    return _git(repo_path, "branch", *options)


def _git(repository: Path, *arguments: str) -> str:
    _check_folder(repository)
    command = ["git", "-C", str(repository), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        message = (done.stderr or done.stdout).strip()
        raise InvalidInput(message or f"git {arguments[0]} failed", code="GIT_ERROR")
    return done.stdout.removesuffix("\n")


def _check_folder(repository: Path) -> None:
    if ONLY and not repository.resolve().is_relative_to(Path(ONLY).resolve()):
        raise Forbidden(f"The repository {str(repository)!r} is outside {ONLY!r}")
    if not repository.is_dir():
        raise NotFound(f"There is no folder {str(repository)!r}", code="NO_SUCH_FOLDER")
    if not (repository / ".git").exists() and not (repository / "HEAD").exists():
        raise NotFound(f"{str(repository)!r} is not a Git repository", code="NO_REPOSITORY")


def _resolve(repository: Path, revision: str) -> None:
    """Refuse what is not a revision, and what git would take for an option."""
    _refuse_option(revision)
    try:
        _git(repository, "rev-parse", "--verify", "--quiet", revision)
    except InvalidInput:
        raise NotFound(
            f"There is no revision {revision!r}",
            code="NO_SUCH_REVISION",
            hint="git_branch lists the branches, git_log the commits",
        ) from None


def _refuse_option(value: str) -> None:
    if value.startswith("-"):
        raise InvalidInput(f"{value!r} cannot start with '-'")


if __name__ == "__main__":
    app.run()
