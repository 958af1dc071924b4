"""How the client starts a server: its environment variables, and the program on Windows."""

from __future__ import annotations

import os
from collections.abc import Mapping

from ...core.signing import SECRET

# The variables that every child gets; the first two lists are those of the official SDK.
_POSIX = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
_WINDOWS = (
    *("APPDATA", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATH", "PATHEXT", "SYSTEMDRIVE"),
    *("PROCESSOR_ARCHITECTURE", "SYSTEMROOT", "TEMP", "USERNAME", "USERPROFILE"),
)
_PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY")
_CERTIFICATES = (
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"),
    "NODE_EXTRA_CA_CERTS",
)
_INHERITED = {
    *(_WINDOWS if os.name == "nt" else _POSIX),
    *("LANG", "TZ", "TMPDIR"),
    *_PROXIES,
    *map(str.lower, _PROXIES),
    *_CERTIFICATES,
}


def child_environment(more: Mapping[str, str], *, inherit: bool) -> dict[str, str]:
    """Return the variables that a child gets from this process, and *more*."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if name != SECRET and (inherit or name in _INHERITED or name.startswith("LC_"))
    }
    return inherited | dict(more)


def windows_program(name: str, env: Mapping[str, str]) -> str:
    """Return the file that a program's name means on Windows, such as `npx.cmd` for `npx`.

    A name that is not found stays as it is. Windows itself only adds `.exe` to a name.
    """
    endings = env.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").lower().split(";")
    if not name.lower().endswith(tuple(endings)):
        folders = [""] if os.path.dirname(name) else env.get("PATH", "").split(os.pathsep)
        for folder in folders:
            for ending in endings:
                file = os.path.join(folder, name + ending)
                if os.path.isfile(file):
                    return file
    return name
