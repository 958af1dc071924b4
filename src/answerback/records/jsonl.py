"""Records as lines of JSON in a file, which several processes may append to."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec

from .place import Place, locked
from .sink import Entry

_TAIL = 1 << 20


class Line(msgspec.Struct, frozen=True):
    """One line; `event` is kept byte for byte, because the hash is of it."""

    chain: str
    seq: int
    hash: str
    event: msgspec.Raw


class JSONL:
    """`JSONL("audit.jsonl")`; the file is made if it is not there."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)

    def __str__(self) -> str:
        return self.path

    def open(self) -> _File:
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        return _File(os.open(self.path, flags, 0o600), Place(self.path))


class _File:
    def __init__(self, fd: int, place: Place) -> None:
        self._fd = fd
        self._place = place
        self._encode = msgspec.json.Encoder().encode

    def newest(self) -> str:
        for line in reversed(self._tail().split(b"\n")):
            try:
                return msgspec.json.decode(line, type=Line).hash
            except msgspec.DecodeError:
                continue
        return ""

    def holds(self, hashed: str) -> bool:
        return hashed.encode() in self._tail()

    def write(self, batch: Sequence[Entry]) -> None:
        lines = b"".join(
            self._encode(Line(each.chain, each.seq, each.hash, msgspec.Raw(each.body))) + b"\n"
            for each in batch
        )
        self._place.check()
        with locked(self._fd):
            self._append(lines)

    def _append(self, lines: bytes) -> None:
        """Under the lock, so that what was begun and cannot be ended can be taken back."""
        size = self._size()
        # One who was killed while it wrote may have left a line without an end.
        if size and self._tail(1) != b"\n":
            lines = b"\n" + lines
        left = memoryview(lines)
        try:
            while left:
                left = left[os.write(self._fd, left) :]
        except BaseException:
            if self._size() > size:
                os.ftruncate(self._fd, size)
            raise

    def _tail(self, most: int = _TAIL) -> bytes:
        size = self._size()
        os.lseek(self._fd, max(size - most, 0), os.SEEK_SET)
        return os.read(self._fd, most)

    def _size(self) -> int:
        return os.fstat(self._fd).st_size

    def close(self) -> None:
        os.close(self._fd)
        self._place.close()
