"""A Flask app that lets no invalid reply out: `flask --app guarded_flask run`."""

from typing import Any

from flask import Flask

from answerback.middleware.wsgi import ValidReplies

app = Flask(__name__)
app.wsgi_app = ValidReplies(app.wsgi_app, only=("/tools/",))  # type: ignore[method-assign]


@app.post("/tools/start")
def start() -> dict[str, Any]:
    """A valid envelope goes out as it is."""
    return {
        "success": True,
        "timestamp": "2026-01-31T12:00:00Z",
        "content": [{"type": "text", "text": "Instance 'one' started"}],
    }


@app.post("/tools/stop")
def stop() -> str:
    """This one is no JSON at all, and is answered with RESPONSE_VALIDATION_ERROR."""
    return "stopped"
