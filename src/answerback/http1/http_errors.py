"""The error of a request that got no response."""

from __future__ import annotations


class HttpFailure(Exception):
    """A request got no response, or half of one.

    *may_have_run* says whether the server may have acted on the request. *quoted* is the malformed
    part of the response; the message leaves it out, because it may repeat credentials.
    *is_too_large* says that the response was refused for its size.
    """

    def __init__(
        self,
        message: str,
        *,
        may_have_run: bool = True,
        quoted: str = "",
        is_too_large: bool = False,
    ) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run
        self.quoted = quoted
        self.is_too_large = is_too_large
