"""The error of a request that got no response."""

from __future__ import annotations


class HttpFailure(Exception):
    """A request got no response, or half of one.

    *may_have_run* says whether the server may have acted on the request.
    """

    def __init__(self, message: str, *, may_have_run: bool = True) -> None:
        super().__init__(message)
        self.may_have_run = may_have_run
