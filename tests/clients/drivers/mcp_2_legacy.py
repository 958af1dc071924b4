"""The official Python SDK, version 2, in a version of the protocol that has sessions."""

import asyncio

from mcp_2 import main

asyncio.run(main("legacy"))
