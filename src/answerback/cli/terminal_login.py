"""Logins for `call` and `list`: in the browser, or with an address that the user pastes.

Only a user at a terminal can log in. The tokens are kept in a private file in the user's settings
folder, so that later commands, including those in scripts, need no login.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

from ..client.faults import LoginError
from ..client.login import FileTokens, Login, RegisteredClient
from ..core.secrets import mask_url
from .host_config import settings_folder
from .program import write_stderr
from .terminal_peer import stderr_is_terminal


def terminal_login(target: str, stdin: int) -> Login:
    """Return the login for servers that ask for one; *target* is a URL or a host's file."""
    terminal = _Terminal(stdin, target)
    folder = settings_folder(sys.platform, os.environ, os.path.expanduser("~"))
    store = FileTokens(Path(folder) / "answerback" / "logins.json")
    return Login(store=store, open_url=terminal.open_page, ask_client=terminal.ask_client)


class _Terminal:
    """Asks the user at the terminal, if there is one."""

    def __init__(self, stdin: int, target: str) -> None:
        self._stdin = stdin
        self._target = target
        # Several servers may ask at once; the user answers them one at a time.
        self._lock = threading.Lock()

    def open_page(self, url: str) -> str | None:
        """Show the login page; return the address that the user pasted, if any."""
        import webbrowser

        self._require_user()
        if not has_browser() or not webbrowser.open(url):
            with self._lock:
                write_stderr(
                    f"Open this page in a browser and log in:\n\n  {url}\n\nThe browser then tries "
                    "to open an address on this machine, which fails if the browser is elsewhere."
                )
                return self._read("Paste that address here: ")
        write_stderr(f"Log in on the page that opened in your browser:\n\n  {url}\n")
        return None

    def ask_client(self, issuer: str) -> object:
        """Ask for the id and secret of a client that the user has registered."""
        from getpass import getpass

        self._require_user()
        with self._lock:
            write_stderr(
                f"{issuer} does not register programs automatically. Register a client there, "
                "with the redirect address http://127.0.0.1/callback."
            )
            id = self._read("Client id: ")
            secret = getpass("Client secret (empty if none): ") if id else ""
        return RegisteredClient(id, secret or None, issuer) if id else None

    def _require_user(self) -> None:
        if not (stderr_is_terminal() and os.isatty(self._stdin)):
            raise LoginError(
                "the server requires a login, which needs a terminal; run this once in a terminal: "
                f"answerback list {mask_url(self._target)}"
            )

    def _read(self, prompt: str) -> str:
        sys.stderr.write(prompt)
        sys.stderr.flush()
        with open(self._stdin, closefd=False) as lines:
            return lines.readline().strip()


def has_browser() -> bool:
    """Return whether a browser can show the user a page; a browser in the terminal cannot."""
    environ = os.environ
    if environ.get("BROWSER"):
        return True
    if environ.get("SSH_CONNECTION"):
        return False
    return sys.platform != "linux" or bool(environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY"))
