"""The time in any time zone: the tools of `mcp-server-time`, written for Answerback.

Run it with `python examples/ported/time_server.py mcp`. The environment variable TZ names the
local time zone.
"""

import os
from datetime import datetime, timedelta
from difflib import get_close_matches
from typing import Annotated, TypedDict
from zoneinfo import ZoneInfo, available_timezones

from answerback import App, InvalidInput, NotFound

LOCAL = os.environ.get("TZ") or "UTC"

app = App("time", version="1.0.0", description=f"The time anywhere. The local zone is {LOCAL}.")

Zone = Annotated[str, f"An IANA time zone, such as Europe/Oslo. The local one is {LOCAL}."]
Clock = Annotated[str, "A time of today in 24 hours, such as 14:30."]


class Moment(TypedDict):
    timezone: str
    datetime: str
    day_of_week: str
    is_dst: bool


class Conversion(TypedDict):
    source: Moment
    target: Moment
    time_difference: str


@app.tool(read_only=True, idempotent=True, raises=[NotFound], examples=[{}])
def get_current_time(timezone: Zone = LOCAL) -> Moment:
    """Get the current time in a time zone."""
    return _moment(datetime.now(_zone(timezone)), timezone)


@app.tool(read_only=True, idempotent=True, raises=[NotFound, InvalidInput])
def convert_time(source_timezone: Zone, time: Clock, target_timezone: Zone) -> Conversion:
    """Convert a time of today from one time zone to another."""
    source_zone, target_zone = _zone(source_timezone), _zone(target_timezone)
    source = _today_at(time, source_zone, source_timezone)
    target = source.astimezone(target_zone)
    return {
        "source": _moment(source, source_timezone),
        "target": _moment(target, target_timezone),
        "time_difference": _difference(source, target),
    }


def _zone(name: str) -> ZoneInfo:
    # Some file systems find a zone also under another spelling; only exact names are accepted.
    if name in available_timezones():
        return ZoneInfo(name)
    near = get_close_matches(name, available_timezones(), n=3)
    hint = f"did you mean {' or '.join(near)}?" if near else "use a name such as Europe/Oslo"
    raise NotFound(f"There is no time zone {name!r}", code="UNKNOWN_TIME_ZONE", hint=hint)


def _today_at(time: str, zone: ZoneInfo, name: str) -> datetime:
    try:
        clock = datetime.strptime(time, "%H:%M").time()
    except ValueError:
        raise InvalidInput(
            f"{time!r} is not a time; write it as HH:MM, from 00:00 to 23:59"
        ) from None
    found = datetime.combine(datetime.now(zone).date(), clock, zone)
    # When clocks are set forward, an hour is left out.
    if datetime.fromtimestamp(found.timestamp(), zone).time() != clock:
        raise InvalidInput(f"{time} does not exist in {name} on {found.date()}: clocks change then")
    return found


def _moment(moment: datetime, zone: str) -> Moment:
    return {
        "timezone": zone,
        "datetime": moment.isoformat(timespec="seconds"),
        "day_of_week": f"{moment:%A}",
        "is_dst": bool(moment.dst()),
    }


def _difference(source: datetime, target: datetime) -> str:
    """Return the hours between two zones: `+9.0h`, or `+5.75h` for Nepal."""
    apart = (target.utcoffset() or timedelta()) - (source.utcoffset() or timedelta())
    hours = apart / timedelta(hours=1)
    return f"{hours:+.1f}h" if hours.is_integer() else f"{hours:+.4g}h"


if __name__ == "__main__":
    app.run()
