"""How much work and memory a server can cause with few bytes."""

from __future__ import annotations

import gzip
import zlib
from typing import SupportsIndex

import pytest

from answerback.http1.http_connection import BadResponse, ResponseReader

HEAD = b"HTTP/1.1 200 OK\r\n"
ZIPPED = HEAD + b"Content-Encoding: gzip\r\n"


class Counted(bytes):
    """Bytes that count how many of them are copied."""

    copied = 0

    def __getitem__(self, key: SupportsIndex | slice) -> bytes:  # type: ignore[override] # slices
        found = super().__getitem__(key)
        assert isinstance(found, bytes)
        Counted.copied += len(found)
        return Counted(found)

    def __add__(self, other: object) -> bytes:
        assert isinstance(other, bytes)
        Counted.copied += len(self) + len(other)
        return Counted(super().__add__(other))


def test_the_bytes_of_small_chunks_are_copied_a_few_times_each() -> None:
    reader = ResponseReader("GET")
    reader.feed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    wire = b"1\r\nx\r\n" * 10_000
    Counted.copied = 0

    for start in range(0, len(wire), 4096):
        reader.feed(Counted(wire[start : start + 4096]))

    assert reader.take() == b"x" * 10_000
    assert Counted.copied < 3 * len(wire)


def test_small_chunks_take_the_memory_of_their_bytes() -> None:
    import tracemalloc

    reader = ResponseReader("GET")
    reader.feed(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    tracemalloc.start()
    try:
        for _ in range(100):
            reader.feed(b"2\r\nxy\r\n" * 1000)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()

    assert reader.size == 200_000
    assert used < 3 * reader.size


def read_zipped(body: bytes) -> bytes:
    reader = ResponseReader("GET")
    reader.feed(ZIPPED + b"Content-Length: %d\r\n\r\n" % len(body))
    reader.feed(body)
    assert reader.is_complete
    return reader.take()


def test_a_response_that_unpacks_to_far_more_than_was_sent_is_refused() -> None:
    bomb = gzip.compress(b"[" + b"[]," * 1_000_000 + b"0]")
    assert len(bomb) * 100 < 3_000_000

    with pytest.raises(BadResponse, match="expands to more"):
        read_zipped(bomb)


def test_a_small_response_may_be_compressed_as_well_as_gzip_can() -> None:
    body = b"[]," * 100_000

    assert read_zipped(gzip.compress(body)) == body


def test_a_large_response_may_be_compressed_as_usual() -> None:
    body = b"".join(b'{"number": %d, "name": "a name"},' % n for n in range(200_000))

    assert read_zipped(gzip.compress(body)) == body


def test_a_compressed_stream_may_go_on_for_ever() -> None:
    """The limit counts what was sent and what was taken, not one read."""
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    reader = ResponseReader("GET")
    reader.feed(ZIPPED + b"\r\n")
    taken = 0

    for number in range(3000):
        event = b"data: %d %s\n\n" % (number, b"abcdefgh" * 100)
        reader.feed(packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH))
        taken += len(reader.take())

    assert taken > 2_000_000
