"""Limits of what others send: replies, lists, prompts, resources, errors, questions, documents.

Each is refused before it costs more than its reader can afford. Within the limits, nothing takes
much more than a quarter of a second in one piece.
"""

from __future__ import annotations

import msgspec

MAX_BYTES = 64 * 1024 * 1024
"""The largest message, reply or HTTP body, unpacked."""
MAX_WIDE_BYTES = 32 * 1024 * 1024
"""The largest message with characters beyond ASCII, which take up to four times their bytes."""
MAX_VALUES = 1_000_000
"""The most values and names of a message; an array or object counts as four."""
MAX_BLOCKS = 10_000
"""The most blocks of a reply, contents of a resource, messages of a prompt, entries of a list."""
MAX_LIST_BYTES = 16 * 1024 * 1024
"""The size of a list's pages after which no further page is asked for."""
MAX_INNER_BYTES = 16 * 1024 * 1024
"""The largest text in a reply that is read as JSON."""
MAX_REPAIRED_BYTES = 4 * 1024 * 1024
"""The largest text that is repaired if it is nearly JSON."""
LARGE = 64 * 1024
"""Larger messages are decoded and read on a thread, while the caller's clock goes on."""
MANY_BLOCKS = 500
"""A reply with more blocks is read on a thread too, however small it is."""


class ReceivedLimits(msgspec.Struct, frozen=True):
    """The limits that a caller can change."""

    bytes: int = MAX_BYTES
    values: int = MAX_VALUES


DEFAULT_RECEIVED = ReceivedLimits()
