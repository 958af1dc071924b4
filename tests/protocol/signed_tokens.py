"""Signers and session ids for tests that forge tokens; the served app has the first two keys."""

from __future__ import annotations

import time

import msgspec

from answerback.core.signing import Signer
from answerback.core.versions import V2025_11_25
from answerback.protocol.session import ClientCapabilities
from answerback.protocol.session_id import SessionId

OURS, OLD, FOREIGN = Signer(b"one" * 6), Signer(b"two" * 6), Signer(b"other")


def session_id(age: int = 0) -> SessionId:
    """A session id that was issued *age* seconds ago."""
    fresh = SessionId.issue(V2025_11_25, ClientCapabilities(form=True), home=0)
    return msgspec.structs.replace(fresh, issued=int(time.time()) - age)


def with_other_character(token: str, place: int) -> str:
    """The token with the character at *place* changed."""
    other = "A" if token[place] != "A" else "B"
    return token[:place] + other + token[place + 1 :]


VALID_ID = session_id().sign(OURS)
