"""Questions in the modern era: the client comes back with the answers, and we remember nothing.

What was answered so far goes to the client and back, sealed and bound to its request.
"""

from __future__ import annotations

import time
from hashlib import blake2b
from typing import Any

import msgspec

from ..peer import NeedsInput
from .mcp_peer import Exchange
from .messages import INVALID_PARAMS, MISSING_CAPABILITY, RpcError
from .params import Retry, ToolCall
from .session import missing
from .signing import Sealer

_PURPOSE = b"round"
LIFETIME = 600
"""How long, in seconds, a user may think."""


class _State(msgspec.Struct, array_like=True):
    expires: int
    request: bytes
    """A digest of the method and of what it was asked."""
    answers: dict[str, Any]


_states = msgspec.msgpack.Decoder(_State)


def recall(exchange: Exchange, retry: Retry | ToolCall, request: bytes, sealer: Sealer) -> None:
    """Give the exchange what its client answered, this time and before."""
    before = {} if retry.state is None else _opened(retry.state, request, sealer)
    exchange.answers = before | retry.responses


def input_required(
    exchange: Exchange, needed: NeedsInput, request: bytes, sealer: Sealer
) -> dict[str, Any]:
    """The result that asks; raises RpcError if the client cannot be asked that."""
    lacking: dict[str, Any] = {}
    for question in needed.questions.values():
        lacking |= missing(exchange.client, question)
    if lacking:
        raise RpcError(
            MISSING_CAPABILITY,
            f"This call needs what the client does not offer: {', '.join(lacking)}",
            {"requiredCapabilities": lacking},
        )
    state = _State(int(time.time()) + LIFETIME, _digest(request), dict(exchange.answers))
    return {
        "resultType": "input_required",
        "inputRequests": {
            key: {"method": question.method, "params": question.params}
            for key, question in needed.questions.items()
        },
        "requestState": sealer.seal(msgspec.msgpack.encode(state), _PURPOSE),
    }


def _opened(token: str, request: bytes, sealer: Sealer) -> dict[str, Any]:
    """Why a state is refused is nobody's business."""
    packed = sealer.open(token, _PURPOSE)
    try:
        state = None if packed is None else _states.decode(packed)
    except msgspec.MsgspecError:
        state = None
    if state is None or state.expires < time.time() or state.request != _digest(request):
        raise RpcError(INVALID_PARAMS, "Invalid requestState")
    return state.answers


def _digest(request: bytes) -> bytes:
    return blake2b(request, digest_size=16).digest()
