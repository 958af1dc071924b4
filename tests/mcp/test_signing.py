"""What we seal opens for us alone, for the same purpose, and only as it was."""

from __future__ import annotations

import itertools
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from answerback.mcp.session import ClientCapabilities
from answerback.mcp.session_id import LIFETIME, SessionId
from answerback.mcp.signing import Signer, signer_from_environment
from answerback.versions import STATEFUL

OURS = Signer(b"ours")
SESSION = b"session"
quick = settings(max_examples=200, derandomize=True, deadline=None)


@quick
@given(st.binary(max_size=200), st.binary(max_size=20))
def test_what_was_sealed_opens_as_it_was(payload: bytes, purpose: bytes) -> None:
    assert OURS.verify(OURS.sign(payload, purpose), purpose) == payload


@quick
@given(st.binary(max_size=60), st.data())
def test_a_token_with_any_bit_changed_does_not_open(payload: bytes, data: st.DataObject) -> None:
    sealed = bytearray(_bytes_of(OURS.sign(payload, SESSION)))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8

    assert OURS.verify(_token_of(bytes(sealed)), SESSION) is None


@quick
@given(st.binary(max_size=60), st.data())
def test_a_token_cut_short_or_made_longer_does_not_open(
    payload: bytes, data: st.DataObject
) -> None:
    token = OURS.sign(payload, SESSION)
    end = data.draw(st.integers(0, len(token) - 1))

    assert OURS.verify(token[:end], SESSION) is None
    assert OURS.verify(token + data.draw(st.text(min_size=1, max_size=4)), SESSION) is None


@quick
@given(st.text(max_size=80))
def test_nothing_that_others_write_opens(token: str) -> None:
    assert OURS.verify(token, SESSION) is None


def test_a_token_has_one_spelling_only() -> None:
    """Else a session that is over could come back under another name."""
    token = OURS.sign(b"payload", SESSION)
    last = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

    others = {token[:-1] + letter for letter in last} - {token}
    others |= {f"{token}=", f"{token}==", f" {token}", f"{token}\n", token[:5] + "\n" + token[5:]}
    others |= {token.replace("-", "+").replace("_", "/") + "!"}

    assert [other for other in others if OURS.verify(other, SESSION) is not None] == []


def test_a_token_opens_for_its_purpose_only() -> None:
    token = OURS.sign(b"payload", SESSION)

    assert OURS.verify(token, b"round") is None
    assert OURS.verify(token, b"") is None


def test_a_token_of_another_key_does_not_open() -> None:
    assert OURS.verify(Signer(b"theirs").sign(b"payload", SESSION), SESSION) is None


def test_an_old_key_still_opens_and_no_longer_seals() -> None:
    old = Signer(b"old").sign(b"payload", SESSION)
    both = Signer(b"new", b"old")

    assert both.verify(old, SESSION) == b"payload"
    assert Signer(b"old").verify(both.sign(b"payload", SESSION), SESSION) is None
    assert Signer(b"new").verify(old, SESSION) is None


def test_two_keys_that_are_known_by_the_same_byte_both_open() -> None:
    first = _bytes_of(OURS.sign(b"", SESSION))[0]
    alike = next(
        secret
        for secret in (b"%d" % number for number in itertools.count())
        if _bytes_of(Signer(secret).sign(b"", SESSION))[0] == first
    )
    token = Signer(alike).sign(b"payload", SESSION)

    assert Signer(b"ours", alike).verify(token, SESSION) == b"payload"
    assert OURS.verify(token, SESSION) is None


@pytest.mark.parametrize("secrets", ["one", "one,two", " one , two ", ",one,"])
def test_the_keys_come_from_the_environment(secrets: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANSWERBACK_SECRET", secrets)

    sealer, is_own = signer_from_environment()

    assert not is_own
    assert sealer.verify(Signer(b"one").sign(b"payload", SESSION), SESSION) == b"payload"
    opened = sealer.verify(Signer(b"two").sign(b"payload", SESSION), SESSION)
    assert (opened is not None) == ("two" in secrets)


@pytest.mark.parametrize("secrets", ["", ",", " , "])
def test_without_a_secret_each_process_makes_its_own(
    secrets: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSWERBACK_SECRET", secrets)

    (one, is_own), (other, _) = signer_from_environment(), signer_from_environment()

    assert is_own
    assert other.verify(one.sign(b"payload", SESSION), SESSION) is None
    assert Signer(b"").verify(one.sign(b"payload", SESSION), SESSION) is None


# SessionIds


@quick
@given(
    st.sampled_from(sorted(STATEFUL)),
    st.builds(ClientCapabilities, form=..., url=..., sampling=..., roots=...),
    st.integers(0, 65535),
    st.binary(max_size=8),
)
def test_a_ticket_says_what_was_agreed(
    version: str, client: ClientCapabilities, home: int, subject: bytes
) -> None:
    ticket = SessionId.issue(STATEFUL[version], client, home, subject)

    assert SessionId.verify(ticket.sign(OURS), OURS) == ticket


@pytest.mark.parametrize(
    ("age", "is_good"),
    [(0, True), (LIFETIME - 5, True), (LIFETIME + 2, False), (-30, True), (-120, False)],
)
def test_a_ticket_is_good_for_its_time(age: int, is_good: bool) -> None:
    fresh = SessionId.issue(STATEFUL["2025-11-25"], ClientCapabilities(), 0)
    ticket = msgspec.structs.replace(fresh, issued=int(time.time()) - age)

    assert (SessionId.verify(ticket.sign(OURS), OURS) is not None) == is_good


@quick
@given(st.binary(max_size=60))
def test_what_we_sealed_but_is_no_ticket_is_none(payload: bytes) -> None:
    if len(payload) != 24:
        assert SessionId.verify(OURS.sign(payload, SESSION), OURS) is None


def test_no_two_tickets_are_alike() -> None:
    ids = {
        SessionId.issue(STATEFUL["2025-11-25"], ClientCapabilities(), 0).sign(OURS)
        for _ in range(1000)
    }

    assert len(ids) == 1000


def _bytes_of(token: str) -> bytes:
    return urlsafe_b64decode(token + "=" * (-len(token) % 4))


def _token_of(sealed: bytes) -> str:
    return urlsafe_b64encode(sealed).rstrip(b"=").decode()
