"""The console's page: one HTML document, joined from the files in `parts/`.

The scripts share one module, in the order of `SCRIPTS`. Indentation and lines of comment are left
out, so a template literal cannot rely on the spaces before a line. `make console` minifies them;
until then, the page has the scripts as they are. The page loads nothing else: its
Content-Security-Policy allows only the script and the style that it has itself.
"""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from gzip import compress
from hashlib import sha256
from importlib.resources import files
from typing import Literal, NamedTuple

_LIBRARY = "preact_htm.js"
"""The file preact/standalone.module.js of the npm package htm, unchanged."""
MINIFIED = "page.min.js"
"""The library and the scripts, minified, under a line that names them by their digest."""
SCRIPTS = (
    "store.js",
    "mcp_client.js",
    "server.js",
    "common.js",
    "schema.js",
    "schema_problems.js",
    "servers.js",
    "schema_form.js",
    "code_samples.js",
    "tool_call.js",
    "models_view.js",
    "pages_view.js",
    "arguments_form.js",
    "widget_host.js",
    "widget_view.js",
    "reply_view.js",
    "tool_list.js",
    "activity.js",
    "questions_view.js",
    "log_view.js",
    "login_view.js",
    "tasks.js",
    "tasks_view.js",
    "completed_field.js",
    "entry_list.js",
    "resources_view.js",
    "prompts_view.js",
    "tools_view.js",
    "history_view.js",
    "start_view.js",
    "main.js",
)
"""The scripts, each after those that it uses while it is loaded."""
STYLES = (
    "style.css",
    "form.css",
    "replies.css",
    "servers.css",
    "rest.css",
    "widgets.css",
    "start.css",
)


class ConsolePage(NamedTuple):
    body: bytes
    compressed: bytes
    """The body, compressed by gzip."""
    headers: tuple[tuple[str, str], ...]


@cache
def console_page(page: Literal["", "docs"] = "") -> ConsolePage:
    """Return the page at `/` or `/docs`, and its headers; joined at the first request."""
    parts = files(__package__) / "parts"
    script = _script()
    style = "\n".join(_compact((parts / name).read_text(encoding="utf-8")) for name in STYLES)
    shell = (parts / "shell.html").read_text(encoding="utf-8").replace("{{page}}", page, 1)
    body = shell.replace("{{style}}", style, 1).replace("{{script}}", script, 1).encode()
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "connect-src 'self'",
            "img-src 'self' data: blob:",
            "media-src data: blob:",
            "frame-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
    headers = (
        ("Content-Security-Policy", policy),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cache-Control", "no-cache"),
        ("Vary", "Accept, Accept-Encoding"),
    )
    return ConsolePage(body, compress(body), headers)


def _script() -> str:
    joined = joined_script()
    file = files(__package__) / "parts" / MINIFIED
    digest, _, minified = file.read_text(encoding="utf-8").partition("\n")
    return minified if digest == script_digest(joined) else joined


def joined_script() -> str:
    """Return the library and the scripts as one, without indentation and comments."""
    parts = files(__package__) / "parts"
    own = [_compact((parts / name).read_text(encoding="utf-8")) for name in SCRIPTS]
    return "\n".join([_as_names((parts / _LIBRARY).read_text(encoding="utf-8")), *own])


def script_digest(joined: str) -> str:
    """Return the first line of the minified file of this script."""
    return f"// {sha256(joined.encode()).hexdigest()}"


def _compact(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _as_names(library: str) -> str:
    """Return a module as a script that defines the names it exports."""
    body, _, exports = library.rpartition("export{")
    pairs = [pair.split(" as ") for pair in exports.strip().rstrip(";}").split(",")]
    members = ", ".join(f"{name}: {local}" for local, name in pairs)
    names = ", ".join(name for _, name in pairs)
    return f"const {{ {names} }} = (() => {{ {body} return {{ {members} }}; }})();"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
