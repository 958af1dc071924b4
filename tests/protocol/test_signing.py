"""Signed tokens verify only with the same key, for the same purpose, and unchanged."""

from __future__ import annotations

import itertools
from base64 import urlsafe_b64decode, urlsafe_b64encode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerback.core.signing import Signer, signer_from_environment
from answerback.core.versions import STATEFUL
from answerback.errors import AnswerbackError
from answerback.protocol.session import ClientCapabilities
from answerback.protocol.session_id import SessionId

OURS = Signer(b"ours")
SESSION = b"session"
quick = settings(max_examples=200, derandomize=True, deadline=None)


@quick
@given(st.binary(max_size=200), st.binary(max_size=20))
def test_a_signed_payload_is_returned_by_verify(payload: bytes, purpose: bytes) -> None:
    assert OURS.verify(OURS.sign(payload, purpose), purpose) == payload


@quick
@given(st.binary(max_size=60), st.data())
def test_a_token_with_any_bit_changed_does_not_verify(payload: bytes, data: st.DataObject) -> None:
    signed = bytearray(_bytes_of(OURS.sign(payload, SESSION)))
    bit = data.draw(st.integers(0, len(signed) * 8 - 1))
    signed[bit // 8] ^= 1 << bit % 8

    assert OURS.verify(_token_of(bytes(signed)), SESSION) is None


@quick
@given(st.binary(max_size=60), st.data())
def test_a_token_cut_short_or_made_longer_does_not_verify(
    payload: bytes, data: st.DataObject
) -> None:
    token = OURS.sign(payload, SESSION)
    end = data.draw(st.integers(0, len(token) - 1))

    assert OURS.verify(token[:end], SESSION) is None
    assert OURS.verify(token + data.draw(st.text(min_size=1, max_size=4)), SESSION) is None


@quick
@given(st.text(max_size=80))
def test_any_other_text_does_not_verify(token: str) -> None:
    assert OURS.verify(token, SESSION) is None


def test_only_one_spelling_of_a_token_verifies() -> None:
    """Otherwise the id of an ended session would be valid again in another spelling."""
    token = OURS.sign(b"payload", SESSION)
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    others = {token[:-1] + letter for letter in last} - {token}
    others |= {f"{token}=", f"{token}==", f" {token}", f"{token}\n", token[:5] + "\n" + token[5:]}
    others |= {token.replace("-", "+").replace("_", "/") + "!"}

    assert [other for other in others if OURS.verify(other, SESSION) is not None] == []


def test_a_token_verifies_only_for_its_purpose() -> None:
    token = OURS.sign(b"payload", SESSION)

    assert OURS.verify(token, b"round") is None
    assert OURS.verify(token, b"") is None


def test_a_token_signed_with_another_key_does_not_verify() -> None:
    assert OURS.verify(Signer(b"theirs").sign(b"payload", SESSION), SESSION) is None


def test_an_old_key_still_verifies_and_no_longer_signs() -> None:
    old = Signer(b"old").sign(b"payload", SESSION)
    both = Signer(b"new", b"old")

    assert both.verify(old, SESSION) == b"payload"
    assert Signer(b"old").verify(both.sign(b"payload", SESSION), SESSION) is None
    assert Signer(b"new").verify(old, SESSION) is None


def test_two_keys_with_the_same_id_byte_both_verify() -> None:
    first = _bytes_of(OURS.sign(b"", SESSION))[0]
    same_byte = next(
        secret
        for secret in (b"%d" % number for number in itertools.count())
        if _bytes_of(Signer(secret).sign(b"", SESSION))[0] == first
    )
    token = Signer(same_byte).sign(b"payload", SESSION)

    assert Signer(b"ours", same_byte).verify(token, SESSION) == b"payload"
    assert OURS.verify(token, SESSION) is None


ONE, TWO = "one" * 6, "two" * 6


@pytest.mark.parametrize("secrets", [ONE, f"{ONE},{TWO}", f" {ONE} , {TWO} ", f",{ONE},"])
def test_the_keys_come_from_the_environment(secrets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSWERBACK_SECRET", secrets)

    signer, is_own = signer_from_environment()

    assert not is_own
    assert signer.verify(Signer(ONE.encode()).sign(b"payload", SESSION), SESSION) == b"payload"
    verified = signer.verify(Signer(TWO.encode()).sign(b"payload", SESSION), SESSION)
    assert (verified is not None) == (TWO in secrets)


@pytest.mark.parametrize("secrets", ["a", "x" * 15, f"{ONE},short", "é" * 7])
def test_a_short_secret_is_refused(secrets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSWERBACK_SECRET", secrets)

    with pytest.raises(AnswerbackError, match="at least 16") as refused:
        signer_from_environment()

    assert not any(len(part) > 3 and part in str(refused.value) for part in secrets.split(","))


@pytest.mark.parametrize("secrets", ["", ",", " , "])
def test_without_a_secret_each_process_makes_its_own_key(
    secrets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSWERBACK_SECRET", secrets)

    (one, is_own), (other, _) = signer_from_environment(), signer_from_environment()

    assert is_own
    assert other.verify(one.sign(b"payload", SESSION), SESSION) is None
    assert Signer(b"").verify(one.sign(b"payload", SESSION), SESSION) is None


@quick
@given(
    st.sampled_from(sorted(STATEFUL)),
    st.builds(ClientCapabilities, form=..., url=..., sampling=..., roots=...),
    st.integers(0, 65535),
    st.binary(max_size=8),
)
def test_a_session_id_keeps_version_capabilities_worker_and_subject(
    version: str, client: ClientCapabilities, home: int, subject: bytes
) -> None:
    id = SessionId.issue(STATEFUL[version], client, home, subject)

    assert SessionId.verify(id.sign(OURS), OURS) == id


@quick
@given(st.binary(max_size=60))
def test_a_signed_payload_of_another_length_is_not_a_session_id(payload: bytes) -> None:
    if len(payload) != 24:
        assert SessionId.verify(OURS.sign(payload, SESSION), OURS) is None


def test_no_two_session_ids_are_equal() -> None:
    ids = {
        SessionId.issue(STATEFUL["2025-11-25"], ClientCapabilities(), 0).sign(OURS)
        for _ in range(1000)
    }

    assert len(ids) == 1000


def _bytes_of(token: str) -> bytes:
    return urlsafe_b64decode(token + "=" * (-len(token) % 4))


def _token_of(signed: bytes) -> str:
    return urlsafe_b64encode(signed).rstrip(b"=").decode()
