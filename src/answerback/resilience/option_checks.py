"""Checks of the values given to Retry, Breaker and Limit, with messages for authors."""

from __future__ import annotations

from collections.abc import Callable
from math import isfinite
from typing import Any

from ..core.json_value import is_integer, is_number
from .clock import Clock

# Flags of code objects, as in `inspect`, whose import takes time.
_ASYNC = 0x80
_GENERATOR = 0x20 | 0x200


def check_first(value: object, example: str) -> None:
    """Refuse a function, which is what a decorator without parentheses gets."""
    if callable(value):
        raise TypeError(f"{value!r} is not a value of it; write {example}")


def check_name(name: str, value: object, example: str) -> None:
    """Refuse a value that is not a name."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name}={value!r} should be a name, such as {example!r}")


def check_count(name: str, value: object) -> None:
    """Refuse a value that is not a positive whole number."""
    if not is_integer(value) or value < 1:
        raise ValueError(f"{name}={value!r} should be a whole number from 1 on")


def check_seconds(name: str, value: Any) -> None:
    """Refuse a value that is not a duration."""
    if not is_number(value) or not isfinite(value) or value <= 0:
        raise ValueError(f"{name}={value!r} should be a number of seconds greater than 0")


def check_classes(name: str, value: object) -> None:
    """Refuse what `isinstance` does not accept, and exceptions that end more than a call."""
    classes = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(each, type) and issubclass(each, Exception) for each in classes):
        raise TypeError(
            f"{name}={value!r} should be an exception class or a tuple of them, such as OSError"
        )


def check_clock(value: object) -> None:
    if not isinstance(value, Clock):
        raise TypeError(f"clock={value!r} should be a Clock of answerback.resilience")


def check_plain(name: str, value: object) -> None:
    """Refuse an async function, whose result nobody would wait for."""
    if _flags(value) & _ASYNC:
        raise TypeError(f"{name} should be a plain function, not async: nobody waits for its value")


def check_store(value: object, *methods: str) -> None:
    """Refuse a store without the methods of its protocol."""
    for each in methods:
        if not callable(getattr(value, each, None)):
            raise TypeError(f"store={value!r} has no method {each}; see docs/guides/resilience.md")


def check_function(part: object, fn: Callable[..., Any]) -> None:
    """Refuse what a part cannot run: a non-function, or a generator."""
    if not callable(fn):
        name = type(part).__name__
        raise TypeError(f"{name} decorates functions, and {fn!r} is none")
    if _flags(fn) & _GENERATOR:
        raise TypeError(
            f"{getattr(fn, '__name__', fn)!r} is a generator, which runs after the call has ended; "
            "decorate the function that reads one value, or return a list"
        )


def _flags(fn: object) -> int:
    while hasattr(fn, "func"):  # A functools.partial.
        fn = fn.func
    flags: int = getattr(getattr(fn, "__code__", None), "co_flags", 0)
    return flags
