"""ClientHints: the locale, user agent and other hints that a client sends in `_meta`.

They are not verified: use them for formatting and statistics, never for authorisation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..json_value import Json


class Location(msgspec.Struct, frozen=True):
    """The user's rough location."""

    city: str | None = None
    """The city's name."""
    region: str | None = None
    """The region's name or code."""
    country: str | None = None
    """The country's name or code."""
    timezone: str | None = None
    """The time zone, such as "Europe/Oslo"."""
    latitude: float | None = None
    """Degrees, from -90 to 90."""
    longitude: float | None = None
    """Degrees, from -180 to 180."""


class ClientHints(msgspec.Struct, frozen=True):
    """A request's hints. A member is None if the client did not send it, or sent nonsense."""

    locale: str | None = None
    """A language tag, such as "en-GB"."""
    user_agent: str | None = None
    """The program of the user."""
    location: Location | None = None
    """Roughly where the user is."""
    subject: str | None = None
    """An anonymous name for the user, for rate limits."""
    session: str | None = None
    """A name for the conversation, for linking its calls."""
    organization: str | None = None
    """An anonymous name for the user's organization."""
    widget_session: str | None = None
    """A name for the widget on the page, for linking its calls."""


def read_hints(meta: Mapping[str, Any] | None) -> ClientHints:
    """Read the hints in a request's `_meta`; values of a wrong type are ignored."""
    if not meta:
        return ClientHints()
    # Older clients send the locale under the second key.
    locale = _text(meta.get("openai/locale")) or _text(meta.get("webplus/i18n"))
    return ClientHints(
        locale=locale,
        user_agent=_text(meta.get("openai/userAgent")),
        location=_location(meta.get("openai/userLocation")),
        subject=_text(meta.get("openai/subject")),
        session=_text(meta.get("openai/session")),
        organization=_text(meta.get("openai/organization")),
        widget_session=_text(meta.get("openai/widgetSessionId")),
    )


def _location(found: Json) -> Location | None:
    if not isinstance(found, Mapping):
        return None
    location = Location(
        city=_text(found.get("city")),
        region=_text(found.get("region")),
        country=_text(found.get("country")),
        timezone=_text(found.get("timezone")),
        latitude=_degrees(found.get("latitude"), 90),
        longitude=_degrees(found.get("longitude"), 180),
    )
    return None if location == Location() else location


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _degrees(value: Json, limit: int) -> float | None:
    """Return an angle up to *limit*; clients send numbers, and some send text."""
    try:
        degrees = float(value) if isinstance(value, str | int | float) else limit + 1
    except (ValueError, OverflowError):
        return None
    is_angle = not isinstance(value, bool) and -limit <= degrees <= limit
    return degrees if is_angle else None
