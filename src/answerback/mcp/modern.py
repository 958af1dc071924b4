"""The modern era: each request says for itself which version it is in, and what its client can."""

from __future__ import annotations

import msgspec

from ..versions import MODERN, Version
from .messages import INVALID_PARAMS, UNSUPPORTED_VERSION, Request, RpcError
from .params import PREFIX, Common, Meta, ToolCall, read
from .session import Client


def meta_of(request: Request) -> Meta | None:
    """What a request says beside its parameters; raises RpcError, with the request's id."""
    params = request.params
    if isinstance(params, ToolCall):
        meta = params.meta
    else:
        try:
            meta = read(params, Common).meta
        except RpcError as error:
            error.id = request.id
            raise
    return None if meta is msgspec.UNSET else meta


def is_modern(meta: Meta | None) -> bool:
    return meta is not None and meta.version is not msgspec.UNSET


def version_of(meta: Meta) -> Version:
    """Raises RpcError for a version that is not spoken."""
    version = MODERN.get(str(meta.version))
    if version is None:
        data = {"supported": sorted(MODERN, reverse=True), "requested": meta.version}
        raise RpcError(UNSUPPORTED_VERSION, "Unsupported protocol version", data)
    return version


def require(meta: Meta | None) -> tuple[Meta, Client]:
    """The two members without which a modern request is not one."""
    if meta is None:
        raise RpcError(INVALID_PARAMS, "Missing _meta")
    if meta.version is msgspec.UNSET:
        raise RpcError(INVALID_PARAMS, f"Missing _meta[{PREFIX}protocolVersion]")
    if meta.capabilities is msgspec.UNSET:
        raise RpcError(INVALID_PARAMS, f"Missing _meta[{PREFIX}clientCapabilities]")
    return meta, Client.of(meta.capabilities)
