"""The socket that a server listens on: TCP or a unix socket, with or without TLS."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import stat
from contextlib import suppress
from ssl import SSLContext

from ...errors import AnswerbackError
from ..http.server_options import BadOption, ServeOptions

_BACKLOG = 2048
_WRONG_HOST = (errno.EADDRNOTAVAIL, socket.EAI_NONAME)
# Hosts that mean every local address, with an address that a client can call.
_ALL_ADDRESSES = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_SOCKET_UMASK = 0o117


class CannotListen(AnswerbackError):
    code = "CANNOT_LISTEN"


def bind(options: ServeOptions) -> socket.socket:
    """Open the listening socket; from here on clients can connect."""
    return _bind_tcp(options) if options.uds is None else _bind_unix(options.uds)


def remove_unix_socket(options: ServeOptions) -> None:
    if options.uds is not None:
        with suppress(OSError):
            os.unlink(options.uds)


def base_url(options: ServeOptions, listener: socket.socket) -> str:
    """Return a URL that a client can call; 0.0.0.0 is not one."""
    scheme = "http" if options.tls_cert is None else "https"
    if options.uds is not None:
        return f"{scheme}://localhost"
    port = listener.getsockname()[1]
    host = _ALL_ADDRESSES.get(options.host, options.host)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def listens_on(options: ServeOptions) -> str:
    """Return the end of the banner's first line, if the URLs do not say everything."""
    if options.uds is not None:
        return f", on the unix socket {options.uds}"
    return ", on every address of this machine" if options.host in _ALL_ADDRESSES else ""


def tls_context(options: ServeOptions) -> SSLContext | None:
    """Return the context with certificate and key; raises BadOption if they cannot be used."""
    if options.tls_cert is None:
        return None
    for flag, path in (("--tls-cert", options.tls_cert), ("--tls-key", options.tls_key)):
        if path is not None and not os.path.isfile(path):
            raise BadOption(f"there is no file {path!r}, which {flag} names")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    try:
        # The empty password keeps OpenSSL from asking for one on the terminal.
        context.load_cert_chain(options.tls_cert, options.tls_key, password="")
    except (OSError, ssl.SSLError) as exc:
        raise BadOption(_tls_problem(options.tls_cert, options.tls_key, exc)) from None
    return context


def _tls_problem(cert: str, key: str | None, exc: OSError) -> str:
    """Return the file that OpenSSL could not use, and what to do; OpenSSL itself names neither."""
    of_cert = f"--tls-cert {cert!r}"
    of_key = f"--tls-key {key!r}" if key else of_cert
    try:
        chain, key_text = _read(cert), _read(key or cert)
    except OSError as unreadable:
        flag = of_cert if unreadable.filename == cert else of_key
        return f"{flag} cannot be used: {unreadable.strerror}"
    reason = getattr(exc, "reason", None) or exc.strerror or exc
    if b"BEGIN CERTIFICATE" not in chain:
        return f"{of_cert} cannot be used: it has no certificate in PEM form; give the chain in it"
    if b"PRIVATE KEY-----" not in key_text:
        found = (
            "no key in PEM form; give the file of the key"
            if key
            else "no key; give it with --tls-key"
        )
        return f"{of_key} cannot be used: it has {found}"
    if b"ENCRYPTED" in key_text:
        advice = f"remove it: openssl pkey -in {key or cert} -out NEW"
        return f"{of_key} cannot be used: it has a passphrase; {advice}"
    if reason == "KEY_VALUES_MISMATCH":
        return (
            f"{of_key} cannot be used: it is not the key of {cert!r}; give the one it was made with"
        )
    return f"{of_cert} cannot be used: {reason}; give a certificate chain and its key in PEM form"


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _bind_tcp(options: ServeOptions) -> socket.socket:
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    # asyncio sets TCP_NODELAY only on sockets that were created with IPPROTO_TCP.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((options.host, options.port))
        listener.listen(_BACKLOG)
    except (OSError, OverflowError) as exc:
        listener.close()
        reason = getattr(exc, "strerror", None) or exc
        is_host = getattr(exc, "errno", None) in _WRONG_HOST
        advice = _another("HOST", options.host) if is_host else _another("PORT", str(options.port))
        raise CannotListen(
            f"cannot listen on {options.host}:{options.port}: {reason}; try another {advice}"
        ) from None
    return listener


def _another(variable: str, value: str) -> str:
    """Return the flag to change, and the environment variable if it has this value."""
    flag = f"--{variable.lower()}"
    if os.environ.get(variable) != value:
        return flag
    return f"{flag}, or another {variable} in the environment"


def _bind_unix(path: str) -> socket.socket:
    """Listen on a unix socket that this process's user and group may connect to."""
    if not hasattr(socket, "AF_UNIX"):
        raise CannotListen("--uds needs unix sockets, which this system does not have")
    _remove_unused_socket(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    umask = os.umask(_SOCKET_UMASK)
    try:
        listener.bind(path)
        listener.listen(_BACKLOG)
    except OSError as exc:
        listener.close()
        # A path that is too long has no errno.
        reason = exc.strerror or exc
        raise CannotListen(f"cannot listen on {path}: {reason}; try another --uds") from None
    finally:
        os.umask(umask)
    return listener


def _remove_unused_socket(path: str) -> None:
    """Remove the socket that an ended server left behind; raises CannotListen if it is in use."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise CannotListen(f"cannot listen on {path}: it is another kind of file")
    except OSError:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        except OSError:
            return
        else:
            raise CannotListen(f"cannot listen on {path}: another server uses it; try another")
