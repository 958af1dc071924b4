"""A Flask app that cannot send an invalid reply: `flask --app guarded_flask run`."""

from typing import Any

from flask import Flask

from answerback.middleware.wsgi import ValidReplies

app = Flask(__name__)
app.wsgi_app = ValidReplies(app.wsgi_app, only=("/tools/",))  # type: ignore[method-assign]


@app.post("/tools/start")
def start() -> dict[str, Any]:
    """A valid envelope is sent unchanged."""
    return {
        "success": True,
        "timestamp": "2026-01-31T12:00:00Z",
        "content": [{"type": "text", "text": "Instance 'one' started"}],
    }


@app.post("/tools/stop")
def stop() -> str:
    """The result is not JSON: RESPONSE_VALIDATION_ERROR is sent instead."""
    return "stopped"
