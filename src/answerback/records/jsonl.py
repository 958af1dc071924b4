"""Records as lines of JSON, in the log or in a file that several processes may append to."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence

import msgspec

from ..core.files import FileEmptied, FileIdentity, make_private
from .event import ISSUE, Entry, Event, WriteOnlySink, file_lock

_TAIL_BYTES = 1 << 20
LOGGER = "answerback.records"
_encode = msgspec.json.Encoder().encode


class JsonlLine(msgspec.Struct, frozen=True):
    """One line of the file. `event` keeps the original bytes, because the hash covers them."""

    chain: str
    seq: int
    hash: str
    event: msgspec.Raw


def encode_line(chain: str, seq: int, record_hash: str, body: bytes) -> bytes:
    """Return a record's line, without the line break."""
    return _encode(JsonlLine(chain, seq, record_hash, msgspec.Raw(body)))


class JSONL:
    """A sink that writes a JSONL file: `JSONL("audit.jsonl")`.

    *path* is the file, which is created if needed.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __str__(self) -> str:
        return self.path

    def open(self) -> _JsonlStore:
        make_private(self.path)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        return _JsonlStore(os.open(self.path, flags, 0o600), FileIdentity(self.path))


class _JsonlStore:
    def __init__(self, fd: int, identity: FileIdentity) -> None:
        self._fd = fd
        self._identity = identity
        # The last line that this process wrote, and where it ends in the file.
        self._last_line = b""
        self._end = 0

    def newest(self) -> str:
        for line in reversed(self._tail().split(b"\n")):
            try:
                return msgspec.json.decode(line, type=JsonlLine).hash
            except msgspec.DecodeError:
                continue
        return ""

    def holds(self, record_hash: str) -> bool:
        return record_hash.encode() in self._tail()

    def write(self, batch: Sequence[Entry]) -> None:
        lines = [encode_line(each.chain, each.seq, each.hash, each.body) + b"\n" for each in batch]
        self._identity.check()
        if not lines:
            return
        with file_lock(self._fd):
            # If the file lost only the last records, someone cut them off: the chain continues,
            # so that `verify` finds the gap.
            start = self._end - len(self._last_line)
            is_there = self._read(start, len(self._last_line)) == self._last_line
            if not is_there and not self._contains(batch[0].chain.encode()):
                raise FileEmptied("the file was emptied while it was open")
            self._append(b"".join(lines))
            self._last_line, self._end = lines[-1], self._size()

    def _contains(self, part: bytes) -> bool:
        overlap = len(part) - 1
        return any(
            part in self._read(start, _TAIL_BYTES + overlap)
            for start in range(0, self._size(), _TAIL_BYTES)
        )

    def _append(self, lines: bytes) -> None:
        """Append all lines or none. Requires the lock, because an error truncates the file."""
        size = self._size()
        # A process that was killed while writing may have left a line without a line break.
        if size and self._tail(1) != b"\n":
            lines = b"\n" + lines
        rest = memoryview(lines)
        try:
            while rest:
                rest = rest[os.write(self._fd, rest) :]
        except BaseException:
            if self._size() > size:
                os.ftruncate(self._fd, size)
            raise

    def _tail(self, length: int = _TAIL_BYTES) -> bytes:
        return self._read(max(self._size() - length, 0), length)

    def _read(self, start: int, length: int) -> bytes:
        os.lseek(self._fd, start, os.SEEK_SET)
        return os.read(self._fd, length)

    def _size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)
        self._identity.close()


class Logging(WriteOnlySink):
    """A sink that logs a line for each event, or a warning for a reply with findings.

    *logger* is a logger or its name.
    """

    def __init__(self, logger: str | logging.Logger = LOGGER) -> None:
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger

    def __str__(self) -> str:
        return f"the log {self._logger.name!r}"

    def write(self, batch: Sequence[Entry]) -> None:
        for entry in batch:
            log_event(self._logger, entry.event, entry.body)


def log_event(logger: logging.Logger, event: Event, body: bytes) -> None:
    """Log *event*; the log record has the whole event in its `event` attribute."""
    extra = {"event": msgspec.to_builtins(event)}
    if event.event == ISSUE:
        issues = [issue.message for issue in event.findings]
        logger.warning("MCP response format issues in %s: %s", event.tool, issues, extra=extra)
    elif event.lost:
        logger.warning("%s", body.decode(), extra=extra)
    else:
        logger.info("%s", body.decode(), extra=extra)
