"""The data of TM Dev Lab's shop in Valkey."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from functools import cache

CARTS, HISTORIES, COUNTERS, PRODUCTS = 10_000, 1_000, 100, 100_000
_MEMBERS = 500
"""The members of the sorted set that one command adds."""


def fill(port: int) -> None:
    """Remove everything from the store, and write the shop's data."""
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.settimeout(60)
        # The server answers nothing between these two, so nothing has to be read meanwhile.
        connection.sendall(_command("CLIENT", "REPLY", "OFF") + _command("FLUSHDB") + _data())
        connection.sendall(_command("CLIENT", "REPLY", "ON"))
        if (answer := connection.recv(100)) != b"+OK\r\n":
            raise RuntimeError(f"the store answered {answer!r}")


@cache
def _data() -> bytes:
    return b"".join([*_carts(), *_histories(), *_popular(), *_counters()])


def _carts() -> Iterator[bytes]:
    for n in range(1, CARTS + 1):
        items = [
            {"product_id": 7 * n % PRODUCTS + 1, "qty": 1 + n % 3},
            {"product_id": 13 * n % PRODUCTS + 1, "qty": 1 + n % 2},
        ]
        if n % 3 == 0:
            items.append({"product_id": 17 * n % PRODUCTS + 1, "qty": 1})
        total = sum(each["qty"] * (each["product_id"] * 100 % 9_999 + 1) / 100 for each in items)
        fields = {
            "user_id": f"user-{n:05d}",
            "items": json.dumps(items),
            "created": "1740000000",
            "expires": "1740086400",
            "total": f"{total:.2f}",
        }
        pairs = [part for pair in fields.items() for part in pair]
        yield _command("HSET", f"bench:cart:user-{n:05d}", *pairs)


def _histories() -> Iterator[bytes]:
    for n in range(1, HISTORIES + 1):
        entries = [
            json.dumps(
                {
                    "order_id": f"ORD-{n:05d}-{j:02d}",
                    "product_id": 7 * n * j % PRODUCTS + 1,
                    "qty": 1 + j % 3,
                    "price": round((13 * n * j % 9_999 + 1) / 100, 2),
                    "ts": 1_740_000_000 + 86_400 * n + 3_600 * j,
                }
            )
            for j in range(1, 21)
        ]
        yield _command("RPUSH", f"bench:history:user-{n:05d}", *entries)


def _popular() -> Iterator[bytes]:
    for start in range(1, PRODUCTS + 1, _MEMBERS):
        ids = range(start, start + _MEMBERS)
        pairs = [part for i in ids for part in (str(7 * i % 10_000), f"product:{i}")]
        yield _command("ZADD", "bench:popular", *pairs)


def _counters() -> Iterator[bytes]:
    for n in range(1, COUNTERS + 1):
        yield _command("SET", f"bench:ratelimit:user-{n:05d}", "0")


def _command(*parts: str) -> bytes:
    """A command in the protocol of Redis."""
    encoded = [part.encode() for part in parts]
    lines = [b"$%d\r\n%b\r\n" % (len(part), part) for part in encoded]
    return b"*%d\r\n" % len(encoded) + b"".join(lines)
