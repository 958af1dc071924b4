"""Whether a request is sent again after an error; `docs/guides/client.md` has the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..protocol.jsonrpc import HEADER_MISMATCH, RpcError
from .client_connection import ClientRequest
from .faults import ConnectError, ConnectionLost

if TYPE_CHECKING:
    from .client_session import ClientSession


async def may_send_again(
    session: ClientSession, asked: ClientRequest, error: ConnectionLost | RpcError
) -> bool:
    """Return whether a request may be resent after an error; reopen a lost connection.

    After a lost connection: if the request did not run, or is safe to repeat. After
    a header mismatch: if a newly fetched list of tools names the headers.
    """
    tool, deadline, lists = asked.tool, asked.deadline, session.lists
    known = lists.known.get(tool)
    if isinstance(error, RpcError):
        if error.code != HEADER_MISMATCH or not tool or known is not None:
            return False
        return await lists.known_tool(tool, deadline) is not None
    is_harmful = known is not None and not known.tool.is_safe_to_repeat
    if session.is_closed or (error.may_have_run and is_harmful):
        return False
    try:
        async with deadline.limit():
            await session.open_shared()
            if not error.may_have_run or not tool:
                return True
            return await lists.is_safe_to_repeat(tool, deadline)
    except (ConnectError, TimeoutError):
        return False
