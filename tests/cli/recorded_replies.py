"""Replies as they are recorded in files, for the tests of `lint`."""

from __future__ import annotations

import json
from typing import Any

GOOD = '{"content":[{"type":"text","text":"5 °C"}]}'
HIDDEN = '{"content":[{"type":"text","text":"Error: 401 Unauthorized"}]}'
NO_CONTENT = '{"success":true,"data":{"instanceId":"instance-1"}}'
NULLS = '{"content":[{"type":"text","text":"3 rows","_meta":null}],"structuredContent":null}'
SCHEMA = {"type": "object", "required": ["total"]}


def frame(**members: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", **members})
