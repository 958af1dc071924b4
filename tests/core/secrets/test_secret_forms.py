"""Secrets are found in any text and masked; placeholders are left alone."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback import validate
from answerback.core.secrets import MASK, mask_forms, may_hold_secrets, secrets_in

SECRETS = [
    "hV7-t9aQ",
    "q83hfT2kLmZ04xVbN1cRwE",
    "ghp_" + "1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R",
    "github_" + "pat_11ABCDEFG0aB3dE5fG7hI9_kL1mN3oP5qR7sT9uV1wX3yZ5",
    "glpat-" + "a1B2c3D4e5F6g7H8i9J0",
    "xoxb" + "-210987654321-0123456789012-AbCdEfGhIjKl",
    "AKIA" + "Q3EGU7TZ5N2LMWX4",
    "ASIA" + "Q3EGU7TZ5N2LMWX4",
    "sk-" + "proj-9dK2mQ7xVb4TnR8sLw3ZpY6cHf1JgA5e",
    "sk-" + "ant-api03-9dK2mQ7xVb4TnR8sLw3ZpY6c",
    "sk-" + "9dK2mQ7xVb4TnR8sLw3ZpY6cHf1JgA5eUo",
    "sk_" + "live_51H8xYzAbCdEfGhIjKlMnOp",
    "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "npm_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "hf_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ01234567",
    "SG." + "a1B2c3D4e5F6g7H8i9J0k1" + ".a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8s9T0u1V",
    "pypi-" + "AgEIcHlwaS5vcmcCJDEyMzQ1Njc4LTEyMzQtMTIzNC0xMjM0",
    "eyJhbGciOiJIUzI1NiJ9." + "eyJ1c2VyIjoiYWxpY2UifQ.c2lnbmF0dXJlLWhlcmU",
    # A payload that is compressed or encrypted, and a subject that is a number.
    "eyJhbGciOiJIUzI1NiIsInppcCI6IkRFRiJ9." + "q1YqLU4tykvMTVWyAgA.c2lnbmF0dXJlLWhlcmU",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9."
    + "eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    "c2hvcDpoVjctdDlhUQ==",
    "c2hvcDpoVjctdDlhUTE=",
    "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYzq8Ab3dE5f",
    "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYzq8Ab3dE5g",
    "hV7-t9aQ1",
    "hV7-t9aQ2",
    "hV7-t9aQ3",
    "hV7-t9aQ4",
    "hV7-t9aQ5",
]
IN_CONTEXT = {
    "hV7-t9aQ": "mysql://shop:{}@db/shop",
    "q83hfT2kLmZ04xVbN1cRwE": "Bearer {}",
    "c2hvcDpoVjctdDlhUQ==": "Authorization: Basic {}",
    "c2hvcDpoVjctdDlhUTE=": "-H 'authorization: basic {}'",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzq8Ab3dE5f": "AWS_SECRET_ACCESS_KEY={}",
    "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzq8Ab3dE5g": "aws_secret_access_key = {}",
    "hV7-t9aQ1": "Server=db.example.com;Database=shop;Uid=shop;Password={};",
    "hV7-t9aQ2": "Driver={{ODBC Driver 18 for SQL Server}};Server=tcp:db,1433;UID=sa;PWD={};",
    "hV7-t9aQ3": "Password={};Server=db;User Id=shop",
    "hV7-t9aQ4": "host=db.internal user=shop password={} dbname=shop",
    "hV7-t9aQ5": "jdbc:postgresql://db.internal/shop?user=shop&password={}&ssl=true",
}
NO_SECRETS = [
    "Server=db;Uid=shop;Password=<your password>;",
    "Server=db;Uid=shop;Password=***;",
    "Server=db;Uid=shop;Password=;",
    "Server=myServerAddress;Database=myDataBase;User Id=myUsername;Password=myPassword;",
    "Server=db;Uid=shop;Pwd=${DB_PASSWORD};",
    "Server={host};Uid={user};Pwd={password};",
    "Server=%s;Uid=%s;Pwd=%s;",
    "Set Password=<your password> in the connection string.",
    "Password=*** was masked by the driver.",
    "The connection string needs Server=, Uid= and Password= to be set.",
    "user = request.user; password = request.password;",
    "user=form.user;password=form.password;send(user,password)",
    "let user=ask();password=read();",
    "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    "AWS_SECRET_ACCESS_KEY=<your key>",
    "Data Source=shop.db;Version=3;",
    "Basic understanding of SQL is enough.",
    "Authorization: Basic <base64 of name:password>",
    "Authorization: Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==",
    "Authorization: Basic dXNlcjpwYXNzd29yZA==",
    "eyJpZCI6MTIzNDU2Nzg5MH0.ZxY7pQ.c2lnbmF0dXJlLWhlcmUtdG9v",
    "eyJhbGciOiJIUzI1NiJ9 is the header of a token",
]


def in_context(secret: str) -> str:
    return IN_CONTEXT.get(secret, "{}").format(secret)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_and_the_text_around_it_is_kept(secret: str) -> None:
    masked = mask_forms(f"before {in_context(secret)} after")

    assert secret not in masked
    assert MASK in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


@given(
    st.sampled_from(SECRETS),
    st.text(max_size=20),
    st.sampled_from(["\n", " ", '"', "=", "\t", "\x0b", "\x1f"]),
)
def test_a_secret_in_a_text_is_suspected_in_its_json_too(
    secret: str, around: str, before: str
) -> None:
    text = f"{around}{before}{in_context(secret)}"
    twice = msgspec.json.encode(
        msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()
    )

    assert list(secrets_in(text)) == [] or may_hold_secrets(twice.decode())
    assert list(secrets_in(before + in_context(secret))) != []


def test_a_private_key_is_masked_from_its_first_line_to_its_last() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEF" * 3 + "\n"

    assert mask_forms(f"a {key}-----END PRIVATE KEY----- b") == f"a {MASK} b"


def test_several_secrets_in_a_text_are_all_masked() -> None:
    text = " ".join(map(in_context, SECRETS))

    masked = mask_forms(text)

    assert not [secret for secret in SECRETS if secret in masked]


def test_a_secret_of_two_kinds_is_masked_once() -> None:
    token = "eyJhbGciOiJIUzI1NiJ9." + "eyJ1c2VyIjoiYWxpY2UifQ.c2lnbmF0dXJlLWhlcmU1Mg"

    assert mask_forms(f"Bearer {token} and the rest") == f"Bearer {MASK} and the rest"


@pytest.mark.parametrize("text", NO_SECRETS)
def test_a_text_that_only_looks_like_a_secret_is_left_alone(text: str) -> None:
    assert mask_forms(text) == text
    assert validate({"content": [{"type": "text", "text": text}]}) == ()


def test_a_text_without_secrets_is_not_changed() -> None:
    text = "https://example.com/a@b:c and postgres://user:password@host/db"

    assert mask_forms(text) == text


HOSTILE = [
    "eyJ" * 40_000,
    "eyJ-" * 30_000,
    "-----BEGIN PRIVATE KEY-----\n" + "a: a: " * 20_000,
    "-----BEGIN PRIVATE KEY-----" * 5_000,
    "x://" * 30_000,
    "user=a;" * 20_000 + "password=",
    "user=a;x=" * 20_000 + "pwd=a",
    "pwd=a;" * 20_000,
    "x://a?b=c&" * 10_000 + "password=d",
    "x://a?" + "b=c&" * 30_000 + "password=d",
    "Basic " * 20_000 + "aaaaaaaa",
    "eyJaaaaaaaaaa.aaaa." * 8_000,
    "x://a:" * 20_000 + "@",
    "Bearer " * 15_000,
    "sk-" * 40_000,
    "ghp_" * 30_000,
    "xoxb-" * 25_000,
    "\n" * 100_000 + " at x",
    " /" * 50_000,
    "/opt/" * 25_000,
    "PostgreSQL " * 10_000,
    '{"a":' * 400 + "1",
    '"{' * 50_000 + '"',
    "data:image/png;base64," + "A" * 100_000 + "!",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:12])
@pytest.mark.parametrize("failed", [False, True])
def test_a_hostile_text_is_checked_in_bounded_time(text: str, failed: bool) -> None:
    started = time.process_time()

    validate({"content": [{"type": "text", "text": text}], "isError": failed})

    assert time.process_time() - started < 5
