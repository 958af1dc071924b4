"""Keeps what the official SDK's client learns in a login, in memory."""

from __future__ import annotations

from typing import Any


class SdkStorage:
    """Has the methods of the SDK's `TokenStorage`."""

    tokens: Any = None
    client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info
