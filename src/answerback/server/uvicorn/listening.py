"""The socket that a server listens on, and the workers that share it.

It is a TCP or a unix socket, with or without TLS. Workers are forks of one parent process, which
serves no requests itself.
"""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from glob import glob
from shutil import rmtree
from ssl import Purpose, SSLContext, SSLError, create_default_context
from tempfile import TemporaryDirectory, gettempdir

from ...core.signing import process_signer
from ...errors import AnswerbackError
from ..http.server_options import BadOption, ServeOptions

_BACKLOG = 2048
_WRONG_HOST = (errno.EADDRNOTAVAIL, socket.EAI_NONAME)
# Hosts that mean every local address, each with an address that a client can connect to.
_ALL_ADDRESSES = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_SOCKET_UMASK = 0o117
_FOLDER, _LOCK = "answerback-", "server.lock"
# Workers need fork, and systems with fork have SIGCHLD and SIGUSR1.
_AWAITED = {signal.SIGTERM, signal.SIGINT, getattr(signal, "SIGCHLD", signal.SIGTERM)}
"""The signals that the workers' parent acts on."""
STOP_NOW = getattr(signal, "SIGUSR1", signal.SIGTERM)
"""Stops a worker like SIGTERM, but skips `--drain`."""
RunWorker = Callable[[int, Callable[[], None]], None]
"""Runs a worker until it exits, given its number and a function to call once it is serving."""


class CannotListen(AnswerbackError):
    code = "CANNOT_LISTEN"


def bind(options: ServeOptions) -> socket.socket:
    """Open the listening socket; from then on, clients can connect."""
    if options.uds is not None:
        return _bind_unix(options.uds)
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
        # The error for a path that is too long has no errno.
        reason = exc.strerror or exc
        raise CannotListen(f"cannot listen on {path}: {reason}; try another --uds") from None
    finally:
        os.umask(umask)
    return listener


def _remove_unused_socket(path: str) -> None:
    """Remove a socket that a stopped server left behind; raises CannotListen if it is in use."""
    try:
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise CannotListen(f"cannot listen on {path}: it is not a socket")
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
            raise CannotListen(f"cannot listen on {path}: another server is using it; try another")


def end_with_parent(pipe: int) -> None:
    """Wait for the parent to exit, then exit too; only the parent can write to *pipe*."""
    os.read(pipe, 1)
    os.kill(os.getpid(), signal.SIGTERM)


def write_line(text: str) -> None:
    """Write a line for the user to stderr, and flush it."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def remove_unix_socket(options: ServeOptions) -> None:
    if options.uds is not None:
        with suppress(OSError):
            os.unlink(options.uds)


def base_url(options: ServeOptions, listener: socket.socket) -> str:
    """Return a URL that a client can connect to, unlike 0.0.0.0."""
    scheme = "http" if options.tls_cert is None else "https"
    if options.uds is not None:
        return f"{scheme}://localhost"
    port = listener.getsockname()[1]
    host = _ALL_ADDRESSES.get(options.host, options.host)
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"


def listens_on(options: ServeOptions) -> str:
    """Return the end of the banner's first line, with details that the URLs do not show."""
    if options.uds is not None:
        return f", on the unix socket {options.uds}"
    return ", on every address of this machine" if options.host in _ALL_ADDRESSES else ""


def tls_context(options: ServeOptions) -> SSLContext | None:
    """Return the TLS context; raises BadOption if the certificate or key cannot be used."""
    if options.tls_cert is None:
        return None
    for flag, path in (("--tls-cert", options.tls_cert), ("--tls-key", options.tls_key)):
        if path is not None and not os.path.isfile(path):
            raise BadOption(f"there is no file {path!r}; correct the {flag} option")
    context = create_default_context(Purpose.CLIENT_AUTH)
    context.set_alpn_protocols(["http/1.1"])
    try:
        # The empty password keeps OpenSSL from asking for one on the terminal.
        context.load_cert_chain(options.tls_cert, options.tls_key, password="")
    except (OSError, SSLError) as exc:
        raise BadOption(_tls_problem(options.tls_cert, options.tls_key, exc)) from None
    return context


def _tls_problem(cert: str, key: str | None, exc: OSError) -> str:
    """Say which file OpenSSL could not use, and what to do; OpenSSL itself says neither."""
    of_cert = f"--tls-cert {cert!r}"
    of_key = f"--tls-key {key!r}" if key else of_cert
    try:
        chain, key_text = _read(cert), _read(key or cert)
    except OSError as unreadable:
        flag = of_cert if unreadable.filename == cert else of_key
        return f"{flag} cannot be used: {unreadable.strerror}"
    reason = getattr(exc, "reason", None) or exc.strerror or exc
    if b"BEGIN CERTIFICATE" not in chain:
        return f"{of_cert} cannot be used: it has no certificate in PEM format; give a PEM chain"
    if b"PRIVATE KEY-----" not in key_text:
        in_key = "no key in PEM format; give the key file"
        found = in_key if key else "no key; give it with --tls-key"
        return f"{of_key} cannot be used: it has {found}"
    if b"ENCRYPTED" in key_text:
        advice = f"remove it: openssl pkey -in {key or cert} -out NEW"
        return f"{of_key} cannot be used: it has a passphrase; {advice}"
    if reason == "KEY_VALUES_MISMATCH":
        return f"{of_key} cannot be used: it is not the key for {cert!r}; give the matching key"
    return f"{of_cert} cannot be used: {reason}; give a certificate chain and its key as PEM"


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def prefork(
    count: int,
    run: RunWorker,
    listener: socket.socket,
    ending: str,
    *,
    started: Callable[[], None],
) -> int:
    """Run *count* workers until a signal ends them, and return the exit status.

    A worker that exits is replaced by one with the same number. The file *ending* tells workers
    that all of them are shutting down.
    """
    process_signer()  # Created before the fork, so that each worker accepts the others' links.
    # Every signal's number is written to a pipe, whichever thread receives the signal: an author's
    # module may have started threads. The numbers stay there until a forked worker's pid is stored.
    arrived, wake_up = os.pipe()
    os.set_blocking(wake_up, False)
    signal.set_wakeup_fd(wake_up, warn_on_full_buffer=False)
    for each in _AWAITED:
        signal.signal(each, lambda *_: None)
    workers = _Workers(run)
    for number in range(count):
        workers.start(number)
    started()
    while workers.running:
        for received in os.read(arrived, 64):
            if received == signal.SIGCHLD:
                workers.reap_exited()
            elif received in _AWAITED:
                # The workers close their copies as they exit. If the socket stayed open here,
                # clients could still connect, but no process would answer them.
                listener.close()
                open(ending, "wb").close()
                workers.stop(received)
    signal.set_wakeup_fd(-1)
    return workers.status


@contextmanager
def worker_folder() -> Iterator[str]:
    """Yield a private folder for files that the workers share; it is removed at the end.

    A killed server leaves its folder behind, and the next server removes it. Each folder has a
    file that is locked while any of its server's processes is running.
    """
    import fcntl

    for leftover in glob(os.path.join(gettempdir(), f"{_FOLDER}*")):
        # The folder may already be gone, have no lock file, or be in use.
        with suppress(OSError):
            if os.lstat(leftover).st_uid == os.getuid():
                with open(os.path.join(leftover, _LOCK), "rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    rmtree(leftover, ignore_errors=True)
    with TemporaryDirectory(prefix=_FOLDER) as folder:
        lock = os.path.join(folder, _LOCK)
        with open(f"{lock}.new", "wb") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            # Renamed only now, so that no other server finds it unlocked.
            os.rename(f"{lock}.new", lock)
            yield folder


class _Workers:
    def __init__(self, run: RunWorker) -> None:
        self._run = run
        self._stopping = False
        self.running: dict[int, int] = {}
        """Each worker's number, by pid."""
        self.status = 0
        # A worker writes its pid to this pipe once it is serving.
        self._ready_reader, self._ready_writer = os.pipe()
        os.set_blocking(self._ready_reader, False)
        self._ready: set[int] = set()
        # A pipe that is never written to. When the parent dies, its end closes, and every worker
        # blocked in `read` exits.
        self._parent_reader, self._parent_writer = os.pipe()

    def start(self, number: int) -> None:
        # A signal to the child stays pending until the child has its own handlers.
        signal.pthread_sigmask(signal.SIG_BLOCK, _AWAITED)
        pid = os.fork()
        if pid == 0:
            os._exit(self._run_worker(number))
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
        self.running[pid] = number

    def _run_worker(self, number: int) -> int:
        """Run in the child process, and return its exit status."""
        try:
            os.close(self._parent_writer)
            signal.set_wakeup_fd(-1)
            for awaited in _AWAITED:
                signal.signal(awaited, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _AWAITED)
            reader = self._parent_reader
            threading.Thread(target=end_with_parent, args=(reader,), daemon=True).start()
            self._run(number, self._report_ready)
        except SystemExit as exit:
            return int(exit.code in (1, True))
        except KeyboardInterrupt:
            return 0
        except AnswerbackError as exc:
            sys.stderr.write(f"worker {os.getpid()}: {exc}\n")
            return 1
        except BaseException:  # noqa: BLE001 -- the last thing this process does
            sys.excepthook(*sys.exc_info())
            return 1
        return 0

    def _report_ready(self) -> None:
        os.write(self._ready_writer, os.getpid().to_bytes(8, "big"))

    def reap_exited(self) -> None:
        """Collect the workers that have exited, and start replacements."""
        written = b""
        with suppress(BlockingIOError):
            while chunk := os.read(self._ready_reader, 4096):
                written += chunk
        pids = (written[at : at + 8] for at in range(0, len(written), 8))
        self._ready.update(int.from_bytes(pid, "big") for pid in pids)
        for pid in list(self.running):
            exited, status = os.waitpid(pid, os.WNOHANG)
            if not exited:
                continue
            number, code = self.running.pop(pid), os.waitstatus_to_exitcode(status)
            if self._stopping:
                # For example, the lifespan failed to shut down; the worker has logged it.
                self.status = self.status or int(code == 1)
            elif pid in self._ready:
                self._ready.remove(pid)
                sys.stderr.write(f"worker {pid} exited with status {code}; starting another\n")
                self.start(number)
            else:
                # A replacement would most likely fail the same way.
                text = f"worker {pid} exited with status {code} before it was ready"
                sys.stderr.write(f"{text}; shutting down\n")
                self.status = 1
                self.stop(STOP_NOW)

    def stop(self, received: int) -> None:
        """Stop all workers. Workers draining after a first SIGTERM stop on any further signal.

        After a second SIGINT, they do not wait for running calls.
        """
        sent = STOP_NOW
        if received == signal.SIGTERM and not self._stopping:
            sent = signal.SIGTERM
        elif received == signal.SIGINT and self._stopping:
            sent = signal.SIGINT
        if received == signal.SIGINT:
            self.status = 128 + received
        self._stopping = True
        for pid in self.running:
            with suppress(ProcessLookupError):
                os.kill(pid, sent)
