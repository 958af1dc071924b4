"""A FastAPI app that cannot send an invalid reply: `uvicorn guarded_fastapi:app`."""

from typing import Any

from fastapi import FastAPI

from answerback.middleware.asgi import ValidReplies

app = FastAPI()
app.add_middleware(ValidReplies, only=("/tools/",))


@app.post("/tools/start")
def start() -> dict[str, Any]:
    """A valid envelope is sent unchanged."""
    return {
        "success": True,
        "timestamp": "2026-01-31T12:00:00Z",
        "content": [{"type": "text", "text": "Instance 'one' started"}],
    }


@app.post("/tools/stop")
def stop() -> dict[str, Any]:
    """The content is missing: INVALID_RESPONSE_FORMAT is sent instead."""
    return {"success": True, "data": {"instanceId": "one"}}
