"""Asks the user the questions of a tool's `Ask` parameters, before the tool runs."""

from __future__ import annotations

from typing import Any

from ..core.peer import NeedsInput, Peer, Question
from ..tools.elicitation import Declined, Form
from ..tools.signature import Ask, marker_of
from ..tools.tool import Tool


async def ask_all(tool: Tool, peer: Peer, kept: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return the answers by parameter name; *kept* receives them as the client sent them.

    Raises NeedsInput with all questions at once if the answers will arrive with a later call, and
    Declined if the user declines a required parameter's question.
    """
    answers: dict[str, Any] = {}
    open_questions: dict[str, Question] = {}
    for parameter in tool.signature.questions:
        marker = marker_of(Ask, parameter.annotation)
        assert marker is not None
        form = Form(marker.message, parameter.annotation, parameter.name, key=parameter.name)
        try:
            answers[parameter.target] = await form.ask(peer, kept)
        except NeedsInput as later:
            open_questions |= later.questions
        except Declined:
            if parameter.required:
                raise
            if parameter.default_factory is not None:
                answers[parameter.target] = parameter.default_factory()
    if open_questions:
        raise NeedsInput(open_questions)
    return answers
