"""Each name, form and place of a secret is masked in every kind of text that is shown or kept."""

from __future__ import annotations

import json
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.secrets.test_secret_forms import SECRETS, in_context

from answerback.client.http_requests import SentCredentials
from answerback.core.secrets import (
    MASK,
    Masker,
    is_secret_name,
    is_secret_path,
    mask,
    mask_command,
    mask_pointer,
    mask_url,
    quotes_secret,
)

SECRET = "hunter2-Zk3vQ9"
NAMES = [
    *("password", "userPassword", "db_password", "DB_PASSWORD", "passwort", "passwd", "passphrase"),
    *("pass_phrase", "passcode", "kennwort", "secret", "client_secret", "secret.value"),
    *("api_key", "api-key", "apiKey", "api.key", "X-Api-Key", "private_key", "private.key"),
    *("access_key", "aws_access_key_id", "credential", "credentials", "authorization"),
    *("Proxy-Authorization", "token", "access_token", "refreshToken", "x-auth-token", "id.token"),
    *("pwd", "db_pwd", "pass", "user-pass", "pin", "user_pin", "pin2", "cvv", "cvc", "auth"),
    *("pasword", "passwrod", "passsword", "api_kye", "secrt", "credentail", "privat_key"),
]
ORDINARY = [
    *("passed", "passage", "compass", "max_tokens", "keyboard", "author", "spinner", "sector"),
    *("passenger", "wordpress", "primary_key", "monkey", "concrete", "cookie", "tokenizer"),
]


@pytest.mark.parametrize("name", NAMES)
def test_a_value_under_a_secrets_name_is_masked_wherever_it_stands(name: str) -> None:
    body = json.dumps({name: SECRET, "note": SECRET, "text": json.dumps({name: [SECRET]})})
    sent = SentCredentials(f"https://h/?{name}={SECRET}", {name.lower(): f"Bearer {SECRET}"})
    masked = [
        mask(f"{name}={SECRET}"),
        mask(f"{name}: {SECRET}"),
        mask(f"{name}: Bearer {SECRET}"),
        mask(f"the {name} '{SECRET}' is wrong"),
        mask(f"config['{name}'] = '{SECRET}'"),
        mask(f'at $["{name}"]: {SECRET}'),
        mask(json.dumps({name: SECRET})),
        mask(json.dumps(json.dumps({name: SECRET}))),
        mask_pointer(f"/data/{name}={SECRET}/x"),
        mask_url(f"https://host:8443/mcp?a=1&{name}={SECRET}&b=2"),
        mask_url(f"https://host:8443/mcp?a=1;{name.replace('_', '%5F')}={SECRET},{SECRET}"),
        *mask_command([f"--{name}={SECRET}", f"--{name}", SECRET, f"{name}={SECRET}"]),
        Masker(body.encode()).text(f"cannot log in with {SECRET}"),
        Masker(body.encode()).pointer(f"/{SECRET}/x"),
        str(Masker(body.encode()).json(body.encode())),
        sent.masked_text(f'{{"error": "bad token {SECRET}"}}'),
    ]

    assert is_secret_name(name)
    assert is_secret_path(f"login['{name}'][0]")
    assert [text for text in masked if SECRET in text] == []
    assert [text for text in masked if MASK not in text] == [f"--{name}"]


@pytest.mark.parametrize("name", ORDINARY)
def test_a_value_under_an_ordinary_name_is_not_masked(name: str) -> None:
    body = json.dumps({name: SECRET}).encode()

    assert mask(f"{name}={SECRET}") == f"{name}={SECRET}"
    assert mask_url(f"https://h/?{name}={SECRET}") == f"https://h/?{name}={SECRET}"
    assert mask_command([f"--{name}", SECRET]) == [f"--{name}", SECRET]
    assert Masker(body).text(SECRET) == SECRET
    assert not quotes_secret(f"bad {SECRET}", {name: SECRET})


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_recognised_by_its_form_in_every_kind_of_text(secret: str) -> None:
    text = in_context(secret)

    assert secret not in mask(f"it was {text}.")
    assert secret not in mask_url(f"https://host/ {text}")
    assert secret not in " ".join(mask_command(["run", text]))
    assert secret not in Masker().text(text)
    assert secret not in str(Masker().json(json.dumps({"note": [text]}).encode()))


@pytest.mark.parametrize(
    ("url", "masked"),
    [
        ("http://anna:s3cret@host/mcp", "http://anna:***@host/mcp"),
        ("http://anna:s3cr@s3cret@host/mcp", "http://anna:***@host/mcp"),
        ("http://anna:s3cr/et@host/mcp", "http://anna:***@host/mcp"),
        ("http://anna:@host/mcp", "http://anna:***@host/mcp"),
        ("http://anna@example.com:s3cret@host/mcp", "http://***@host/mcp"),
        ("http://s3cret@host/mcp", "http://***@host/mcp"),
        ("http://[::1]:80/@scope", "http://[::1]:80/@scope"),
        ("http://host:80/@scope?mail=a@b.c", "http://host:80/@scope?mail=a@b.c"),
        ("http://secrets.example.com:8443/mcp", "http://secrets.example.com:8443/mcp"),
        ("http://host/mcp?token=s3cr;et&x=1#pin=7", "http://host/mcp?token=***&x=1#pin=***"),
        (f"http://host/mcp?x={SECRETS[2]}", "http://host/mcp?x=***"),
        ("http://host/?token=", "http://host/?token="),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, masked: str) -> None:
    assert mask_url(url) == masked
    assert "s3cr" not in " ".join(mask_command(["run", url]))


@given(st.text(min_size=17, max_size=40), st.text(max_size=20), st.integers(0, 40))
def test_a_value_under_a_secrets_name_is_masked_elsewhere_also_escaped_or_cut_off(
    secret: str, around: str, cut: int
) -> None:
    masker = Masker(json.dumps({"password": secret}).encode())
    shown = [secret, repr(secret)[1:-1], secret.encode("unicode_escape").decode()]

    for text in (*shown, secret[: max(16, len(secret) - cut)]):
        assert text not in masker.text(f"{around}{text}{around}").replace(MASK, "")


def test_a_text_quotes_a_secret_that_was_sent_as_json_in_a_string() -> None:
    sent = {"config": json.dumps({"login": {"password": SECRET}})}

    assert quotes_secret(f"{SECRET} is too short", sent)
    assert not quotes_secret("it is too short", sent)


@pytest.mark.parametrize("secret", ["7", "a'b\"c", 1234])
def test_a_text_quotes_even_a_short_secret(secret: object) -> None:
    assert quotes_secret(f"not {str(secret)!r}", {"pins": {"pin": [secret]}})


def test_a_text_about_too_many_values_may_quote_a_secret() -> None:
    assert quotes_secret("wrong", [{}] * 3_000)


@pytest.mark.parametrize(
    "url", ["x://a:" * 20_000, "x://a" * 20_000, ";pin=" * 20_000, "?token=&" * 20_000]
)
def test_a_hostile_url_is_masked_in_bounded_time(url: str) -> None:
    started = process_time()

    mask_url(f"http://{url}")

    assert process_time() - started < 5
