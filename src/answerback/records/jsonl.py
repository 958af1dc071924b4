"""Records as lines of JSON in a file, to which several processes may append."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from .sink import Entry, FileIdentity, file_lock

_TAIL_BYTES = 1 << 20


class JsonlLine(msgspec.Struct, frozen=True):
    """One line of the file. `event` keeps the original bytes, because the hash covers them."""

    chain: str
    seq: int
    hash: str
    event: msgspec.Raw


class JSONL:
    """Writes records to a JSONL file, as in `JSONL("audit.jsonl")`; creates the file if needed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __str__(self) -> str:
        return self.path

    def open(self) -> _JsonlStore:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        return _JsonlStore(os.open(self.path, flags, 0o600), FileIdentity(self.path))


class _JsonlStore:
    def __init__(self, fd: int, identity: FileIdentity) -> None:
        self._fd = fd
        self._identity = identity
        self._encode = msgspec.json.Encoder().encode

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
        lines = b"".join(
            self._encode(JsonlLine(each.chain, each.seq, each.hash, msgspec.Raw(each.body))) + b"\n"
            for each in batch
        )
        self._identity.check()
        with file_lock(self._fd):
            self._append(lines)

    def _append(self, lines: bytes) -> None:
        """Append all lines or none. Needs the lock: after an error the file is truncated."""
        size = self._size()
        # A process that was killed while it wrote may have left a line without a line break.
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
        size = self._size()
        os.lseek(self._fd, max(size - length, 0), os.SEEK_SET)
        return os.read(self._fd, length)

    def _size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)
        self._identity.close()
