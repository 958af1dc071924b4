"""The client: `connect` connects to one or more servers, so that you can call their tools.

Its only dependency is msgspec.
"""

from __future__ import annotations

from ..registry.declarations import Change
from .connecting import connect
from .faults import ConnectError
from .many_servers import ManyServers
from .remote_server import RemoteServer, StartedTask, start_task
from .results import FilledPrompt, RemotePrompt, RemoteResource, RemoteTemplate, RemoteTool
from .targets import BadTarget
from .user_handlers import ElicitationRequest

__all__ = [
    "BadTarget",
    "Change",
    "ConnectError",
    "ElicitationRequest",
    "FilledPrompt",
    "ManyServers",
    "RemotePrompt",
    "RemoteResource",
    "RemoteServer",
    "RemoteTemplate",
    "RemoteTool",
    "StartedTask",
    "connect",
    "start_task",
]
