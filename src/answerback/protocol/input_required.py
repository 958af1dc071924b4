"""Questions in the stateless era: the result is `input_required`, and the client calls again.

The answers so far travel in `requestState`, a signed token bound to the request.
"""

from __future__ import annotations

import time
from hashlib import blake2b
from typing import Any

import msgspec

from ..core.json_value import JsonObject
from ..core.peer import NeedsInput
from ..core.signing import Signer
from .jsonrpc import INVALID_PARAMS, MISSING_CAPABILITY, RpcError
from .mcp_peer import McpPeer
from .params import RetriedRequest
from .session import missing_capability

_PURPOSE = b"round"
LIFETIME = 600
"""Seconds that a user may take to answer."""


class _State(msgspec.Struct, array_like=True):
    expires: int
    request: bytes
    """A digest of the kind, name and arguments of the request."""
    answers: dict[str, Any]


_states = msgspec.msgpack.Decoder(_State)


def recall(peer: McpPeer, retry: RetriedRequest, request: bytes, signer: Signer) -> None:
    """Give the peer the client's answers, from this and earlier requests."""
    before = {} if retry.state is None else _verified(retry.state, request, signer)
    peer.answers = before | retry.responses


def input_required(peer: McpPeer, needed: NeedsInput, request: bytes, signer: Signer) -> JsonObject:
    """Return the result that asks the user; raises RpcError if the client lacks a capability."""
    missing: JsonObject = {}
    for question in needed.questions.values():
        missing |= missing_capability(peer.client, question)
    if missing:
        raise RpcError(
            MISSING_CAPABILITY,
            f"This call needs what the client does not offer: {', '.join(missing)}",
            {"requiredCapabilities": missing},
        )
    state = _State(int(time.time()) + LIFETIME, _digest(request), dict(peer.answers))
    return {
        "resultType": "input_required",
        "inputRequests": {
            key: {"method": question.method, "params": question.params}
            for key, question in needed.questions.items()
        },
        "requestState": signer.sign(msgspec.msgpack.encode(state), _PURPOSE),
    }


def _verified(token: str, request: bytes, signer: Signer) -> JsonObject:
    """Return the answers in a signed state; the error gives no reason that helps an attacker."""
    packed = signer.verify(token, _PURPOSE)
    try:
        state = None if packed is None else _states.decode(packed)
    except msgspec.MsgspecError:
        state = None
    if state is None or state.expires < time.time() or state.request != _digest(request):
        raise RpcError(INVALID_PARAMS, "Invalid requestState")
    return state.answers


def _digest(request: bytes) -> bytes:
    return blake2b(request, digest_size=16).digest()
