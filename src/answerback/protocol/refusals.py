"""Refuses calls over MCP: a gate's challenge, and questions that need an answer first."""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from ..calls.call import Call, Outcome
from ..calls.gating import challenge_for
from ..calls.runtime import Runtime
from ..core.authentication import AppAuth, Challenge
from ..core.json_value import JsonObject
from ..core.peer import NeedsInput, Question
from ..core.reply import Error, Reply
from ..core.request_info import LOGS_IN_BY_RESULT, detect_host
from ..core.signing import Signer
from ..core.versions import V2025_11_25
from ..dialects.common import REFUSAL
from ..gates.prompts import (
    LINK_REQUIRED,
    LOGIN_REQUIRED,
    SUBSCRIPTION_REQUIRED,
    codes_of,
    header_value,
    in_result,
    login_refusal,
)
from ..registry.declarations import Registry
from ..tools.requires import Refusal, UserGate
from .jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    MISSING_CAPABILITY,
    URL_ELICITATION_REQUIRED,
    Request,
    RetriedRequest,
    RpcError,
)
from .listing import entry_of
from .mcp_peer import McpPeer
from .session import missing_capability

_PURPOSE = b"round"
LIFETIME = 600
"""How many seconds a user has to answer."""


class _State(msgspec.Struct, array_like=True):
    expires: int
    request: bytes
    """A digest of the request's kind, name and arguments."""
    answers: dict[str, Any]


_states = msgspec.msgpack.Decoder(_State)


def recall(peer: McpPeer, retry: RetriedRequest, request: bytes, signer: Signer) -> None:
    """Set the peer's answers to those sent with this request and earlier ones."""
    before: JsonObject = {}
    if retry.state is not None:
        packed = signer.verify(retry.state, _PURPOSE)
        try:
            state = None if packed is None else _states.decode(packed)
        except msgspec.MsgspecError:
            state = None
        if state is None or state.expires < time.time() or state.request != _digest(request):
            # Giving a reason would help an attacker.
            raise RpcError(INVALID_PARAMS, "Invalid requestState")
        before = state.answers
    peer.answers = before | retry.responses


def input_required(peer: McpPeer, needed: NeedsInput, request: bytes, signer: Signer) -> JsonObject:
    """Return the result that asks the user; raises RpcError if the client lacks a capability."""
    missing: JsonObject = {}
    for question in needed.questions.values():
        missing |= missing_capability(peer.client, question)
    if missing:
        raise RpcError(
            MISSING_CAPABILITY,
            f"This call needs something the client does not offer: {', '.join(missing)}",
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


def _digest(request: bytes) -> bytes:
    return blake2b(request, digest_size=16).digest()


_OUTPUT_TEMPLATE = "openai/outputTemplate"


def refuse(kind: str, call: Call, peer: McpPeer, reply: Reply[Any], runtime: Runtime) -> Outcome:
    """Return the outcome to send instead of *reply*; raises RpcError if it has to be an error.

    *kind* is "tool", "resource", "prompt" or "completion".
    """
    error = reply.error
    assert error is not None
    reason = reply.meta[REFUSAL]
    challenge = call.challenge
    if challenge is not None and _is_by_status(kind, runtime.registry, peer):
        raise by_status(runtime.auth, error, challenge)
    if "url" in reason and peer.client.url and kind != "completion":
        question = _ask_to_open(reason, peer)
        if question is not None:
            return question
    if kind != "tool":
        raise RpcError(INVALID_PARAMS, error.message, reason)
    challenge = challenge or challenge_for(error)
    # The tool's widget shows the refusal.
    meta = None if call.tool is None else call.tool.settings.meta
    template = (meta or {}).get(_OUTPUT_TEMPLATE)
    more = {} if template is None else {_OUTPUT_TEMPLATE: template}
    if challenge is not None and peer.http is not None:
        more |= in_result(runtime.auth, challenge)
    return msgspec.structs.replace(reply, meta=more | reply.meta)


def _is_by_status(kind: str, registry: Registry, peer: McpPeer) -> bool:
    if not peer.can_refuse_by_status:
        return False
    return kind != "tool" or challenge_form(registry, peer) == "http"


def by_status(auth: AppAuth | None, error: Error, challenge: Challenge) -> RpcError:
    """Return the error that refuses a request with an HTTP status."""
    found = RpcError(INVALID_REQUEST, error.message, {"code": error.code})
    found.challenge = (challenge.status, header_value(auth, challenge))
    return found


def batch_challenge(
    runtime: Runtime, request: Request, tool_name: str, batch: McpPeer
) -> RpcError | None:
    """Return the error that refuses a whole batch, because one *request* requires a login.

    A response has only one status, so gates that check only the user decide before any request in
    the batch runs. Other gates' refusals are in the results of their requests.
    """
    registry = runtime.registry
    entry = entry_of(registry, request, tool_name)
    user = batch.describe_request("mcp").user
    if entry is None or entry.gates is None or entry.gates.hide_from(user):
        return None
    kind = "tool" if request.method == "tools/call" else ""
    if not _is_by_status(kind, registry, batch):
        return None
    for gate in entry.gates.declared:
        if (refusal := _refuse_by_user(gate, user)) is not None:
            error = msgspec.structs.replace(Error.of(refusal), kind=None)
            challenge = challenge_for(error, entry.gates.scopes)
            return None if challenge is None else by_status(runtime.auth, error, challenge)
    return None


def _refuse_by_user(gate: Callable[..., Any], user: object) -> Refusal | None:
    """Return the refusal from a gate that needs only the user; None if there is none."""
    if isinstance(gate, UserGate):
        return gate.refuse_user(user)
    # `subscription` and `linked` imply a login.
    needs_login = user is None and LOGIN_REQUIRED in codes_of(gate)
    return login_refusal() if needs_login else None


def challenge_form(registry: Registry, peer: McpPeer) -> Literal["http", "result"]:
    """Return how to tell a request's client to log in.

    This depends on what the client says about itself, which is not verified and does not affect
    access.
    """
    if registry.challenge != "auto":
        return registry.challenge
    request = peer.describe_request("mcp")
    agent = None if request.headers is None else request.headers.get("user-agent")
    host = detect_host(agent, None if request.client is None else request.client.name)
    if host in LOGS_IN_BY_RESULT or any(key.startswith("openai/") for key in request.meta or ()):
        return "result"
    return "http"


def _ask_to_open(reason: JsonObject, peer: McpPeer) -> NeedsInput | None:
    """Return the question that opens a page; None if it is already answered or cannot be asked.

    Raises RpcError in the version that uses an error to ask.
    """
    url, message = reason["url"], reason["message"]
    # The client shows the link itself.
    shown = message.removesuffix(f": {url}")
    params = {"mode": "url", "message": shown, "url": url}
    if peer.version.stateless:
        # Our messages name the plan or the service; an author's may differ each time.
        is_ours = reason["code"] in (SUBSCRIPTION_REQUIRED, LINK_REQUIRED)
        key = f"{reason['code']} {shown if is_ours else reason.get('feature', '')}"
        if key in peer.answers:
            return None
        return NeedsInput({key: Question("elicitation/create", params, key)})
    if peer.version is not V2025_11_25:
        return None
    # Each link is a different question, identified by its digest.
    params["elicitationId"] = blake2b(url.encode(), digest_size=12).hexdigest()
    raise RpcError(URL_ELICITATION_REQUIRED, message, {"elicitations": [params]})
