"""The client's OAuth logins: `connect(url, auth=Login())`."""

from __future__ import annotations

from .login_settings import ClientCredentials, Login
from .token_store import FileTokens, KeyringTokens, MemoryTokens, RegisteredClient, TokenStore
from .user_consent import browser, paste

__all__ = [
    "ClientCredentials",
    "FileTokens",
    "KeyringTokens",
    "Login",
    "MemoryTokens",
    "RegisteredClient",
    "TokenStore",
    "browser",
    "paste",
]
