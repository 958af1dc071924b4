"""A FastAPI app that lets no invalid reply out: `uvicorn guarded_fastapi:app`."""

from typing import Any

from fastapi import FastAPI

from answerback.middleware.asgi import ValidReplies

app = FastAPI()
app.add_middleware(ValidReplies, only=("/tools/",))


@app.post("/tools/start")
def start() -> dict[str, Any]:
    """A valid envelope goes out as it is."""
    return {
        "success": True,
        "timestamp": "2026-01-31T12:00:00Z",
        "content": [{"type": "text", "text": "Instance 'one' started"}],
    }


@app.post("/tools/stop")
def stop() -> dict[str, Any]:
    """This one forgot its content, and is answered with INVALID_RESPONSE_FORMAT."""
    return {"success": True, "data": {"instanceId": "one"}}
