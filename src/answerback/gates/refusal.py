"""Refusal: the error of a gate that says what the caller lacks, and where to get it."""

from __future__ import annotations

from ..errors import ToolError


class Refusal(ToolError):
    """Refuses a call; with the code LOGIN_REQUIRED or SCOPE_REQUIRED the client can log in.

    *url* is a page where the user can get what is missing, and *feature* the name of that. The
    message ends with the URL, for clients that show the text alone.
    *scopes* are those that the call needs; by default those of the tool's `scope` gates.
    """

    code = kind = "FORBIDDEN"

    def __init__(
        self,
        message: str,
        code: str | None = None,
        details: object = None,
        *,
        hint: str | None = None,
        url: str | None = None,
        feature: str | None = None,
        scopes: tuple[str, ...] = (),
    ) -> None:
        if url and url not in message:
            message = f"{message}: {url}"
        super().__init__(message, code, details, hint=hint)
        self.url = url
        self.feature = feature
        self.scopes = scopes
