"""Secrets are found wherever they stand, and made unreadable."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback import validate
from answerback.rules.secrets import MASK, mask, may_hold_secrets, secrets_in

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
]
IN_CONTEXT = {"hV7-t9aQ": "mysql://shop:{}@db/shop", "q83hfT2kLmZ04xVbN1cRwE": "Bearer {}"}


def shown(secret: str) -> str:
    return IN_CONTEXT.get(secret, "{}").format(secret)


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_and_what_stands_around_it_is_kept(secret: str) -> None:
    masked = mask(f"before {shown(secret)} after")

    assert secret not in masked
    assert MASK in masked
    assert masked.startswith("before ")
    assert masked.endswith(" after")


@given(
    st.sampled_from(SECRETS),
    st.text(max_size=20),
    st.sampled_from(["\n", " ", '"', "=", "\t", "\x0b", "\x1f"]),
)
def test_what_is_found_in_a_text_is_suspected_in_its_json(
    secret: str, around: str, before: str
) -> None:
    text = f"{around}{before}{shown(secret)}"
    twice = msgspec.json.encode(
        msgspec.json.encode(text.encode("utf-8", "replace").decode()).decode()
    )

    assert list(secrets_in(text)) == [] or may_hold_secrets(twice.decode())
    assert list(secrets_in(before + shown(secret))) != []


def test_a_key_is_masked_from_its_first_line_to_its_last() -> None:
    key = "-----BEGIN PRIVATE KEY-----\n" + "MIIEvQIBADANBgkqhkiG9w0BAQEF" * 3 + "\n"

    assert mask(f"a {key}-----END PRIVATE KEY----- b") == f"a {MASK} b"


def test_several_secrets_in_a_text_are_all_masked() -> None:
    text = " ".join(map(shown, SECRETS))

    masked = mask(text)

    assert not [secret for secret in SECRETS if secret in masked]


def test_a_text_without_secrets_is_the_same_afterwards() -> None:
    text = "https://example.com/a@b:c and postgres://user:password@host/db"

    assert mask(text) == text


HOSTILE = [
    "eyJ" * 40_000,
    "eyJ-" * 30_000,
    "-----BEGIN PRIVATE KEY-----\n" + "a: a: " * 20_000,
    "-----BEGIN PRIVATE KEY-----" * 5_000,
    "x://" * 30_000,
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
def test_a_hostile_text_takes_no_longer_than_its_length_suggests(text: str, failed: bool) -> None:
    started = time.process_time()

    validate({"content": [{"type": "text", "text": text}], "isError": failed})

    assert time.process_time() - started < 1
