"""`python -m docsite.reference`: writes every page of the reference that is made from the code."""

from __future__ import annotations

from answerback.rules import rule_pages

from .api_pages import api_pages
from .markdown import with_part
from .source import ROOT
from .wire_pages import (
    command_line,
    commands,
    environment,
    error_codes,
    host_keys,
    http,
    other_keys,
)

FOLDER = ROOT / "docs" / "reference"
MADE = "<!-- `make reference` writes this page from the source. -->"


def _page(name: str) -> str:
    return (FOLDER / name).read_text(encoding="utf-8")


def pages() -> dict[str, str]:
    """Return all pages with generated parts, by their path below `docs/reference/`."""
    metadata = with_part(_page("metadata.md"), "host keys", host_keys())
    whole = {
        **api_pages(),
        "command-line.md": command_line(),
        "errors.md": error_codes(),
        "environment.md": environment(),
        "http.md": http(),
    }
    return {
        **{name: f"{text.rstrip()}\n\n{MADE}" for name, text in whole.items()},
        "metadata.md": with_part(metadata, "other keys", other_keys()),
        "commands.md": with_part(_page("commands.md"), "commands", commands()),
    }


def main() -> None:
    """Write the pages, and delete those of the API that no longer exist."""
    written = pages()
    for old in (FOLDER / "api").glob("*.md"):
        if f"api/{old.name}" not in written:
            old.unlink()
    for name, text in written.items():
        path = FOLDER / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.rstrip() + "\n", encoding="utf-8")
    rule_pages.main(str(FOLDER / "rules"))


if __name__ == "__main__":
    main()
