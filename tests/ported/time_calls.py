"""Calls of the time server."""

from __future__ import annotations

from tests.ported.answers import ToolCall, same_data, same_moment

ZONES = (
    *("UTC", "Europe/Oslo", "Europe/London", "America/New_York", "Asia/Tokyo", "Asia/Kathmandu"),
    *("Australia/Lord_Howe", "Pacific/Chatham", "America/St_Johns", "Africa/Cairo"),
)
TIMES = (
    *(("UTC", "00:00", "Asia/Tokyo"), ("Europe/Oslo", "23:59", "America/New_York")),
    *(("Asia/Kathmandu", "12:30", "UTC"), ("UTC", "12:30", "Asia/Kathmandu")),
    *(("America/St_Johns", "06:15", "Pacific/Chatham"), ("Asia/Tokyo", "09:05", "Asia/Tokyo")),
    *(
        ("Pacific/Kiritimati", "13:00", "Pacific/Pago_Pago"),
        ("Europe/London", "7:05", "Asia/Dubai"),
    ),
    *(("Africa/Cairo", "18:45", "Australia/Lord_Howe"), ("Asia/Kolkata", "00:01", "Asia/Yangon")),
)
BAD = (
    ToolCall("get_current_time", {"timezone": "Europe/Olso"}, words="did you mean Europe/Oslo"),
    ToolCall("get_current_time", {"timezone": "europe/oslo"}, words="'europe/oslo'"),
    ToolCall("get_current_time", {"timezone": ""}, words="time zone"),
    ToolCall("get_current_time", {"timezone": "../etc/passwd"}, words="'../etc/passwd'"),
    ToolCall("get_current_time", {"timezone": 7}, words="timezone: expected str, got int 7"),
    ToolCall(
        "convert_time",
        {"source_timezone": "UTC", "time": "25:00", "target_timezone": "UTC"},
        words="'25:00' is not a time",
    ),
    ToolCall(
        "convert_time",
        {"source_timezone": "UTC", "time": "noon", "target_timezone": "UTC"},
        words="HH:MM",
    ),
    ToolCall(
        "convert_time",
        {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Mars/Base"},
        words="'Mars/Base'",
    ),
    ToolCall(
        "convert_time",
        {"source_timezone": "UTC", "time": "12:00"},
        words="target_timezone: missing",
    ),
    ToolCall("convert_time", {}, words="time: missing"),
    ToolCall(
        "convert_time",
        {"source": "UTC", "time": "12:00", "target_timezone": "UTC"},
        words="source_timezone: missing",
    ),
)
CALLS = [
    *(ToolCall("get_current_time", {"timezone": zone}, same_moment) for zone in ZONES),
    *(
        ToolCall(
            "convert_time",
            {"source_timezone": source, "time": time, "target_timezone": target},
            same_data,
        )
        for source, time, target in TIMES
    ),
    *BAD,
]
