"""Texts and JSON that the seeds fix, for the tests that quote them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SCHEMA_FILE_000 = Path(__file__).with_name("seed_000.schema.json")
SCHEMA_000: dict[str, Any] = json.loads(SCHEMA_FILE_000.read_text())
STARTED_000 = {"type": "text", "text": "Instance 'vscode-instance-1' started successfully"}
STARTED_DATA_000 = {"instanceId": "instance-1", "status": "running"}
IMAGE_000 = {
    "type": "image",
    "url": "https://example.com/charts/cpu-usage.png",
    "altText": "CPU usage chart showing spikes during peak hours",
    "width": 800,
    "height": 400,
    "caption": "CPU usage for instance-1 over the last 24 hours",
}
RESOURCE_000 = {
    "type": "resource",
    "resourceType": "url",
    "identifier": "http://localhost:8080",
    "name": "VSCode Web UI",
    "description": "Web-based VSCode interface for your instance",
    "metadata": {"requiresAuth": True, "authType": "password"},
}

OSLO_003 = {
    "location": "Oslo",
    "temperature": 5,
    "conditions": "Cloudy",
    "humidity": 78,
    "wind_speed": 12,
}
SUCCESS_003 = {
    "content": [{"type": "text", "text": json.dumps(OSLO_003, ensure_ascii=False, indent=2)}],
    "structuredContent": OSLO_003,
    "isError": False,
}
ERROR_003 = {
    "content": [{"type": "text", "text": "Error: Location not found: NonexistentCity12345"}],
    "isError": True,
}

WEATHER_TEXT_004 = "Current weather in New York:\nTemperature: 72°F\nConditions: Partly cloudy"
RATE_LIMITED_004 = "Failed to fetch weather data: API rate limit exceeded"
WEATHER_004 = {"temperature": 22.5, "conditions": "Partly cloudy", "humidity": 65}
WEATHER_SCHEMA_004 = {
    "type": "object",
    "properties": {
        "temperature": {"type": "number", "description": "Temperature in celsius"},
        "conditions": {"type": "string", "description": "Weather conditions description"},
        "humidity": {"type": "number", "description": "Humidity percentage"},
    },
    "required": ["temperature", "conditions", "humidity"],
}
RUST_004 = 'fn main() {\n    println!("Hello world!");\n}'
LINK_004 = {
    "type": "resource_link",
    "uri": "file:///project/src/main.rs",
    "name": "main.rs",
    "description": "Primary application entry point",
    "mimeType": "text/x-rust",
}
EMBEDDED_004 = {
    "type": "resource",
    "resource": {
        "uri": "file:///project/src/main.rs",
        "title": "Project Rust Main File",
        "mimeType": "text/x-rust",
        "text": RUST_004,
    },
}
ANNOTATED_004 = {
    "type": "text",
    "text": "Important result",
    "annotations": {
        "audience": ["user"],
        "priority": 0.9,
        "lastModified": "2025-05-03T14:30:00Z",
    },
}
