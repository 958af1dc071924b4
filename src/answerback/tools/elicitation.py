"""Forms: questions for the user, whose answers are decoded into typed values."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.peer import Peer, Question
from ..errors import ToolError
from ..types.annotation_reader import is_object
from ..types.arguments import Arguments, Parameter
from ..types.problems import InvalidArguments

if TYPE_CHECKING:
    from ..core.json_value import Json, JsonObject


# MCP's forms are flat objects, and allow only these JSON Schema keywords and formats.
_FORM_KEYWORDS = frozenset(
    {"type", "title", "description", "default", "enum", "enumNames", "oneOf", "anyOf", "const"}
    | {"items", "minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"}
)
_FORM_FORMATS = frozenset({"email", "uri", "date", "date-time"})


class Declined(ToolError):
    """The user declined or cancelled the question."""

    code = kind = "INPUT_DECLINED"


def check_question(form: object, unknown: JsonObject) -> None:
    """Raise TypeError if the answer's type is missing, or if there are unknown options."""
    advice = (
        "write ctx.elicit('Sure?', bool), which returns the answer, and raises Declined "
        "if the user does not answer"
    )
    if unknown:
        raise TypeError(f"ctx.elicit has no option {min(unknown)!r}; {advice}")
    if form is None:
        raise TypeError(f"ctx.elicit needs the answer's type; {advice}")


# A decoder creates classes that only the garbage collector frees, so there is one per type, not one
# per question.
@lru_cache(maxsize=256)
def _arguments(name: str, annotation: object) -> Arguments:
    # Some clients send everything as strings; lenient mode reads "7" as 7.
    return Arguments([Parameter(name=name, annotation=annotation)], lenient=True)


class Form:
    """A question whose answer has a type, or matches the author's JSON Schema.

    *answer* is the type or the schema. An object's members are the form's fields; a
    value of any other type is one field, called *name*.
    """

    def __init__(
        self, message: str, answer: object, name: str = "value", *, key: str | None = None
    ) -> None:
        self.message = message
        self._key = key
        self._name = name
        self._own_schema: JsonObject | None = answer if isinstance(answer, dict) else None
        annotation = dict[str, Any] if self._own_schema is not None else answer
        self._is_object = is_object(annotation)
        self._parameter = Parameter(name=name, annotation=annotation)
        try:
            self._arguments = _arguments(name, annotation)
        except TypeError:  # An annotation that contains a list or a dict is not hashable.
            self._arguments = _arguments.__wrapped__(name, annotation)

    def question(self) -> Question:
        """Return the question as MCP's elicitation request."""
        params = {"message": self.message, "requestedSchema": self._own_schema or self._schema()}
        return Question("elicitation/create", params, self._key)

    async def ask(self, peer: Peer, kept: JsonObject | None = None) -> Json:
        """Return the user's answer; in a terminal, invalid fields are asked for again.

        The MCP result is stored in *kept* under the question's key.
        """
        question = self.question()
        result = await peer.ask(question)
        while peer.can.ask_again and (invalid := self._invalid_fields(result)):
            # Ask only for the invalid fields, or for all fields if none is named.
            valid = {key: each for key, each in result["content"].items() if key not in invalid}
            schema = question.params["requestedSchema"]
            fields = {
                name: field for name, field in schema["properties"].items() if name in invalid
            }
            message = "\n".join(
                f"{name}: {text}" if name else text for name, text in invalid.items()
            )
            narrow = schema | {"properties": fields or schema["properties"]}
            repeated = Question(
                question.method, {"message": message, "requestedSchema": narrow}, question.key
            )
            again = await peer.ask(repeated)
            result = again | {"content": valid | again.get("content", {})}
        if kept is not None and self._key is not None:
            kept[self._key] = result
        return self.answer(result)

    def answer(self, result: Json) -> Json:
        """Return the value in the MCP result; raise Declined or InvalidArguments."""
        found = result if isinstance(result, dict) else {}
        action = found.get("action")
        if action != "accept":
            word = "cancelled" if action == "cancel" else "declined"
            raise Declined(f"The question was {word}: {self.message}")
        content = found.get("content") or {}
        arguments = {self._name: content} if self._is_object else content
        return self._arguments.decode(msgspec.json.encode(arguments))[self._name]

    def _invalid_fields(self, result: JsonObject) -> dict[str, str]:
        """Return the messages about invalid answers, by form field."""
        try:
            self.answer(result)
        except InvalidArguments as exc:
            found: dict[str, str] = {}
            for problem in exc.problems:
                path = problem.path
                if self._is_object:
                    path = path.removeprefix(self._name).removeprefix(".")
                found[path.partition("[")[0].partition(".")[0]] = problem.message
            return found
        except Declined:
            pass
        return {}

    def _schema(self) -> JsonObject:
        """Return the schema of the form's fields."""
        from ..types.json_schema import arguments_schema, output_schema

        if self._is_object:
            whole = output_schema(self._parameter.annotation)
        else:
            whole = arguments_schema([self._parameter])
        fields = {name: _field_schema(part) for name, part in whole.get("properties", {}).items()}
        schema: JsonObject = {"type": "object", "properties": fields}
        return schema | ({"required": whole["required"]} if whole.get("required") else {})


def _field_schema(schema: JsonObject) -> JsonObject:
    kept = {word: value for word, value in schema.items() if word in _FORM_KEYWORDS}
    if schema.get("format") in _FORM_FORMATS:
        kept["format"] = schema["format"]
    if "enum" in kept and "type" not in kept:
        kept["type"] = "string"
    return kept
