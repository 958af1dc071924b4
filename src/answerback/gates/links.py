"""Links in refusals: each has a signed token for one user, which can be redeemed once."""

from __future__ import annotations

import hmac
import os
import stat
import time
from contextlib import suppress
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

from ..calls.context import current_runtime
from ..core.authentication import UsedTokens, User
from ..core.log import logger
from ..core.signing import process_signer
from ..errors import AnswerbackError

if TYPE_CHECKING:
    from ..state.shared import SharedState


_SPARE = 86_400
"""Seconds to keep a file after its token has expired, in case the clock is set back later."""


class UnsafeDirectory(AnswerbackError):
    """A directory is open to users other than the one this process runs as."""

    code = "BAD_SETTING"


def used_tokens_in(state: SharedState | None) -> UsedTokens:
    """Return the store of used tokens: the hosts' shared state, or else files on this machine."""
    if state is None:
        return UsedFiles()
    from ..state.shared import UsedRows

    return UsedRows(state)


class UsedFiles:
    """Keeps an empty file for each used token, in a directory that no other user can open.

    Creating a file is atomic, so only one of a machine's workers accepts a token. By default,
    *directory* is inside the system's temporary directory.
    """

    def __init__(self, directory: str | os.PathLike[str] | None = None) -> None:
        self._directory = None if directory is None else os.fspath(directory)

    def add(self, token: bytes, expires: int) -> bool:
        directory = self._opened()
        now = time.time()
        with os.scandir(directory) as files:
            for each in files:
                # Another process may have removed the file.
                with suppress(OSError):
                    if each.stat().st_mtime + _SPARE < now:
                        os.unlink(each.path)
        path = os.path.join(directory, sha256(token).hexdigest())
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        os.utime(path, (expires, expires))
        return True

    def _opened(self) -> str:
        directory = self._directory
        if not directory:
            import tempfile

            user = os.getuid() if hasattr(os, "getuid") else "user"
            directory = os.path.join(tempfile.gettempdir(), f"answerback-used-{user}")
        with suppress(FileExistsError):
            os.mkdir(directory, 0o700)
        found = os.lstat(directory)
        is_ours = not hasattr(os, "getuid") or (
            found.st_uid == os.getuid() and not found.st_mode & 0o077
        )
        if not stat.S_ISDIR(found.st_mode) or not is_ours:
            raise UnsafeDirectory(
                f"{directory} must be a directory that only this user can open; remove it, or pass "
                "App(access=Access(used_tokens=UsedFiles('/a/directory/of/yours')))"
            )
        return directory


LIFETIME = 900
"""How many seconds a link is valid for."""
PARAMETER = "token"
_PURPOSE = b"link"


class LinkRefused(AnswerbackError):
    """A link's token is forged, expired, already used, or another user's; the log says which."""

    code = "FORBIDDEN"

    def __init__(self) -> None:
        super().__init__("This link cannot be used; go back and ask for a new one")


class Redeemed(msgspec.Struct, frozen=True):
    """A link's purpose: the plan or the service that a user lacks."""

    code: str
    """"SUBSCRIPTION_REQUIRED" or "LINK_REQUIRED"."""
    name: str
    """The plan or the service."""
    feature: str | None = None
    """The feature that needs the plan or the account, if the gate names one."""


class _Token(msgspec.Struct, array_like=True):
    expires: int
    nonce: bytes
    user: bytes
    """A digest of the issuer and the subject."""
    code: str
    name: str
    feature: str | None = None


_tokens = msgspec.msgpack.Decoder(_Token)


def link_to(page: str, user: object, purpose: Redeemed) -> str:
    """Return the URL of *page* with a token for *user*, for one *purpose*."""
    expires = int(time.time()) + LIFETIME
    more = msgspec.structs.astuple(purpose)
    token = _Token(expires, os.urandom(16), user_key(user), *more)
    signed = process_signer().sign(msgspec.msgpack.encode(token), _PURPOSE)
    address, mark, fragment = page.partition("#")
    separator = "&" if "?" in address else "?"
    return f"{address}{separator}{PARAMETER}={signed}{mark}{fragment}"


def check_page(url: object) -> str:
    """Return a page's URL; raises ValueError unless it is an absolute HTTPS URL."""
    from urllib.parse import urlsplit

    parts = urlsplit(url) if isinstance(url, str) else None
    is_local = parts is not None and parts.hostname in ("localhost", "127.0.0.1", "::1")
    if parts is None or not parts.hostname or parts.scheme not in ("https", "http"):
        raise ValueError(f"url={url!r} should be an absolute URL, like 'https://example.com/plans'")
    # `urlsplit` removes spaces and line breaks, which a browser or a header would not.
    if any(each <= " " for each in str(url)):
        raise ValueError(f"url={url!r} should be a URL without spaces or control characters")
    if parts.scheme == "http" and not is_local:
        raise ValueError(f"url={url!r} should begin with https://, because its token is secret")
    process_signer()
    return str(url)


def check_gate_page(url: object) -> str:
    """Return the URL of a gate's page: an absolute one, or a path relative to the app's origin."""
    if isinstance(url, str) and url.startswith("/") and not url.startswith("//"):
        process_signer()
        return url
    return check_page(url)


def page_url(page: str) -> str | None:
    """Return the absolute URL of a gate's page; None for a path if the app's URL is unknown."""
    if not page.startswith("/"):
        return page
    from urllib.parse import urljoin

    running = current_runtime()
    url = "" if running is None else running.endpoint
    return urljoin(url, page) if url else None


def redeem(token: str, user: object, used: UsedTokens) -> Redeemed:
    """Redeem a link's token and return its purpose; raises LinkRefused."""
    packed = process_signer().verify(str(token), _PURPOSE)
    if packed is None:
        raise _refused("it is forged, or signed with another key")
    found = _tokens.decode(packed)
    if found.expires < time.time():
        raise _refused("it has expired")
    if user is None or not hmac.compare_digest(found.user, user_key(user)):
        raise _refused("it is another user's")
    if not used.add(found.nonce, found.expires):
        raise _refused("it has already been used")
    return Redeemed(found.code, found.name, found.feature)


def _refused(reason: str) -> LinkRefused:
    logger("answerback.gates").warning("a link's token was refused: %s", reason)
    return LinkRefused()


def user_key(user: object) -> bytes:
    """Return a digest of the user that stays the same across logins."""
    if isinstance(user, User):
        return user.key
    # A user from a web server or another framework.
    name = user if isinstance(user, str) else getattr(user, "username", None)
    if not isinstance(name, str) or not name:
        raise TypeError(f"a link needs a User or a name, not {type(user).__name__}")
    return User(subject=name).key
