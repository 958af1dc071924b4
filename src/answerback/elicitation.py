"""Asking the user: what a tool wants to know, and how an answer becomes a value of its type."""

from __future__ import annotations

from typing import Any

import msgspec

from .errors import ToolError
from .peer import NeedsInput, Peer, Question, ask_of
from .tools.tool import Tool
from .types.arguments import Arguments
from .types.parameter import Parameter
from .types.problems import InvalidArguments
from .types.unservable import is_object

_FORM_WORDS = frozenset(
    {"type", "title", "description", "default", "enum", "enumNames", "oneOf", "anyOf", "const"}
    | {"items", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
)
_FORM_FORMATS = frozenset({"email", "uri", "date", "date-time"})


class Declined(ToolError):
    """The user would not answer."""

    code = kind = "INPUT_DECLINED"


class Form:
    """A question with a form for an answer of one type; or with a schema of the author's own."""

    def __init__(
        self, message: str, answer: Any, name: str = "value", *, key: str | None = None
    ) -> None:
        self.message = message
        self._key = key
        self._name = name
        self._own_schema: dict[str, Any] | None = answer if isinstance(answer, dict) else None
        annotation = dict[str, Any] if self._own_schema is not None else answer
        self._is_object = is_object(annotation)
        self._parameter = Parameter(name=name, annotation=annotation)
        # People type "7" into forms, and not every client makes a number of it.
        self._arguments = Arguments([self._parameter], lenient=True)

    def question(self) -> Question:
        params = {"message": self.message, "requestedSchema": self._own_schema or self._schema()}
        return Question("elicitation/create", params, self._key)

    async def ask(self, peer: Peer) -> Any:
        """The value that was answered; a person is asked again for what does not fit."""
        question = self.question()
        result = await peer.ask(question)
        while peer.can.again and (wrong := self._wrong(result)):
            right = {key: each for key, each in result["content"].items() if key not in wrong}
            again = await peer.ask(_narrowed(question, wrong))
            result = again | {"content": right | again.get("content", {})}
        return self.answer(result)

    def answer(self, result: Any) -> Any:
        """The value that was answered; raises Declined, or InvalidArguments."""
        action = result.get("action") if isinstance(result, dict) else None
        if action != "accept":
            word = "cancelled" if action == "cancel" else "declined"
            raise Declined(f"The question was {word}: {self.message}")
        content = result.get("content") or {}
        given = {self._name: content} if self._is_object else content
        return self._arguments.decode(msgspec.json.encode(given))[self._name]

    def _wrong(self, result: dict[str, Any]) -> dict[str, str]:
        """What does not fit, by the field it was answered in."""
        try:
            self.answer(result)
        except InvalidArguments as exc:
            return {self._field(problem.path): problem.message for problem in exc.problems}
        except Declined:
            pass
        return {}

    def _field(self, path: str) -> str:
        path = path.removeprefix(self._name).removeprefix(".") if self._is_object else path
        return path.partition("[")[0].partition(".")[0]

    def _schema(self) -> dict[str, Any]:
        """Forms are flat, and know few words of JSON Schema."""
        from .types.json_schema import arguments_schema, output_schema

        if self._is_object:
            whole = output_schema(self._parameter.annotation)
        else:
            whole = arguments_schema([self._parameter])
        fields = {name: _plain(part) for name, part in whole.get("properties", {}).items()}
        schema: dict[str, Any] = {"type": "object", "properties": fields}
        return schema | ({"required": whole["required"]} if whole.get("required") else {})


async def ask_all(tool: Tool, peer: Peer) -> dict[str, Any]:
    """The answers to a tool's questions, asked before it runs; all at once where that can be."""
    answers: dict[str, Any] = {}
    open_questions: dict[str, Question] = {}
    for parameter in tool.signature.questions:
        mark = ask_of(parameter.annotation)
        assert mark is not None
        form = Form(mark.message, parameter.annotation, parameter.name, key=parameter.name)
        try:
            answers[parameter.name] = await form.ask(peer)
        except NeedsInput as later:
            open_questions |= later.questions
        except Declined:
            if parameter.required:
                raise
    if open_questions:
        raise NeedsInput(open_questions)
    return answers


def _narrowed(question: Question, wrong: dict[str, str]) -> Question:
    """The same for the fields that are wrong, or for all where none is named; it says why."""
    schema = question.params["requestedSchema"]
    fields = {name: field for name, field in schema["properties"].items() if name in wrong}
    message = "\n".join(f"{name}: {text}" if name else text for name, text in wrong.items())
    narrow = schema | {"properties": fields or schema["properties"]}
    return Question(question.method, {"message": message, "requestedSchema": narrow}, question.key)


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    kept = {word: value for word, value in schema.items() if word in _FORM_WORDS}
    if schema.get("format") in _FORM_FORMATS:
        kept["format"] = schema["format"]
    if "enum" in kept and "type" not in kept:
        kept["type"] = "string"
    return kept
