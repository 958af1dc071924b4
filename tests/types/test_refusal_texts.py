"""Refusals quote no secrets, and show the texts of validators by one rule."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from typing import Annotated, Any, Literal

import msgspec
import pydantic
import pytest

from answerback import App

SECRET = "hunter2-Xy7"


class Check:
    """Raises in each of the ways in which validators raise."""

    @staticmethod
    def run(way: str) -> str:
        match way:
            case "raise":
                raise ValueError("must be even")
            case "assert":
                assert way != "assert", "must be odd"
            case "int":
                int("seven")
            case "type":
                raise TypeError(SECRET)
            case "other":
                raise RuntimeError(SECRET)
        return way


class Model(pydantic.BaseModel):
    way: str

    @pydantic.field_validator("way")
    @classmethod
    def check(cls, value: str) -> str:
        return Check.run(value)


class Struct(msgspec.Struct):
    way: str

    def __post_init__(self) -> None:
        Check.run(self.way)


@dataclasses.dataclass
class Data:
    way: str

    def __post_init__(self) -> None:
        Check.run(self.way)


class Login(pydantic.BaseModel):
    password: str
    user: str = ""

    @pydantic.model_validator(mode="after")
    def refuse(self) -> Login:
        raise ValueError(f"{self.password} is not the password of {self.user}")


class Settings(pydantic.BaseModel):
    text: str

    @pydantic.field_validator("text")
    @classmethod
    def refuse(cls, value: str) -> str:
        raise ValueError(f"{json.loads(value)['password']} is too short")


class Pin(msgspec.Struct):
    pin: str

    def __post_init__(self) -> None:
        int(self.pin)


class Account(msgspec.Struct):
    user: str
    api_key: Annotated[str, msgspec.Meta(max_length=3)]
    number: int = msgspec.field(name="api.key", default=0)


class Custom(pydantic.BaseModel):
    token: str

    @pydantic.field_validator("token")
    @classmethod
    def check(cls, value: str) -> str:
        raise pydantic_core_error("bad_token", f"the token {value} is unknown")


def pydantic_core_error(kind: Any, text: Any) -> Exception:
    from pydantic_core import PydanticCustomError

    return PydanticCustomError(kind, text)


def app() -> App:
    app = App("refusals")

    @app.tool
    def model(value: Model) -> str:
        return value.way

    @app.tool
    def struct(value: Struct) -> str:
        return value.way

    @app.tool
    def data(value: Data) -> str:
        return value.way

    @app.tool
    def log_in(login: Login) -> str:
        return login.user

    @app.tool
    def set_up(settings: Settings) -> str:
        return settings.text

    @app.tool
    def unlock(value: Pin) -> str:
        return value.pin

    @app.tool
    def custom(value: Custom) -> str:
        return value.token

    @app.tool
    def account(value: Account) -> str:
        return value.user

    @app.tool
    def flat(password: int, mode: Literal["a"] = "a", api_keys: list[int] | None = None) -> int:
        return password

    return app


def refuse(tool: str, **arguments: Any) -> tuple[str, str]:
    """The message of the refusal, and the whole reply as text."""
    reply = asyncio.run(app().call(tool, **arguments))
    assert reply.error is not None
    return reply.error.message, str(reply)


@pytest.mark.parametrize("tool", ["model", "struct", "data"])
@pytest.mark.parametrize(
    ("way", "text"),
    [
        ("raise", "must be even"),
        ("assert", "must be odd"),
        ("int", "literal for int() with base 10"),
    ],
)
def test_the_text_of_a_value_error_or_assertion_error_reaches_the_caller(
    tool: str, way: str, text: str
) -> None:
    message, _ = refuse(tool, value={"way": way})

    assert text in message


@pytest.mark.parametrize("tool", ["model", "struct", "data"])
def test_the_text_of_another_exception_of_a_validator_is_not_shown(tool: str) -> None:
    _, reply = refuse(tool, value={"way": "other"})

    assert SECRET not in reply


@pytest.mark.parametrize("tool", ["struct", "data"])
def test_the_text_of_a_type_error_is_logged_and_not_shown(
    tool: str, caplog: pytest.LogCaptureFixture
) -> None:
    message, reply = refuse(tool, value={"way": "type"})

    assert "refused by its class (TypeError)" in message
    assert SECRET not in reply
    assert "callers do not see its text" in caplog.text


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("flat", {"password": SECRET}),
        ("flat", {"password": 1, "api_keys": [SECRET]}),
        ("flat", {"password": 1, "api_keys": SECRET}),
        ("account", {"value": {"user": "ada", "api_key": SECRET}}),
        ("log_in", {"login": {"password": SECRET, "user": "ada"}}),
        ("custom", {"value": {"token": SECRET}}),
        ("set_up", {"settings": {"text": json.dumps({"password": SECRET})}}),
        ("account", {"value": {"user": "ada", "api_key": "x", "api.key": SECRET}}),
        ("unlock", {"value": {"pin": SECRET}}),
        ("unlock", {"value": {"pin": f"'\n\"{SECRET}"}}),
        ("account", {"value": f'{{"api_key": "{SECRET}"'}),
        ("account", {"value": f'[{{"api_key": "{SECRET}"}}]'}),
        ("account", {"value": f"{{'apiKey': '{SECRET}'}}"}),
        ("log_in", {"login": json.dumps({"password": SECRET, "user": "ada"})}),
        ("custom", {"value": json.dumps({"token": SECRET})}),
        ("flat", {"password": 1, "mode": json.dumps({"password": SECRET})}),
    ],
)
def test_a_value_under_the_name_of_a_secret_is_not_quoted(
    tool: str, arguments: dict[str, Any]
) -> None:
    message, reply = refuse(tool, **arguments)

    assert message
    assert SECRET not in reply


def test_a_value_under_another_name_is_quoted() -> None:
    message, _ = refuse("flat", password=1, mode="blue")

    assert "got str 'blue'" in message
