"""The five presets of contracts, and contracts derived from them."""

from typing import Any

import msgspec
import pytest

from answerback import App, Contract
from answerback.contract import ALIGNED, APPS, DIRECT, ENVELOPE, PRESETS, STANDARD, contract_named


def test_the_members_of_the_presets() -> None:
    rows = {
        name: (
            preset.text,
            preset.wrap_objects,
            preset.error_text,
            preset.tool_prefix,
            preset.envelope_in_mcp,
            preset.http,
            preset.route,
        )
        for name, preset in PRESETS.items()
    }

    assert rows == {
        "standard": ("json", False, "message", "", False, "rest", "/functions/"),
        "aligned": ("json_first", True, "json", "functions.", False, "rest", "/functions/"),
        "envelope": ("readable", False, "prefixed", "", True, "envelope", "/functions/"),
        "apps": ("own", False, "message", "", False, "mcp", "/functions/"),
        "direct": ("indented", False, "prefixed", "", False, "mcp", "/"),
    }


def test_only_aligned_spreads_tuples() -> None:
    assert [preset.name for preset in PRESETS.values() if preset.spread_tuples] == ["aligned"]


@pytest.mark.parametrize("preset", [STANDARD, ALIGNED, ENVELOPE, APPS, DIRECT])
def test_a_preset_is_found_by_its_name(preset: Contract) -> None:
    assert contract_named(preset.name) is preset
    assert App("test", contract=preset.name).contract is preset


def test_contract_named_returns_a_contract_unchanged() -> None:
    mine = Contract(name="mine")

    assert contract_named(mine) is mine


def test_an_unknown_name_is_refused_with_the_known_names() -> None:
    with pytest.raises(ValueError, match="'lax'; use one of standard, aligned, envelope, apps"):
        contract_named("lax")


def test_a_derived_contract_changes_only_what_is_named() -> None:
    coded = STANDARD.derive(name="coded", error_text="coded")

    assert (coded.name, coded.error_text) == ("coded", "coded")
    assert coded.derive(name="standard", error_text="message") == STANDARD
    assert STANDARD.error_text == "message"


def test_deriving_with_an_unknown_member_is_refused() -> None:
    with pytest.raises(TypeError, match="eror_text"):
        STANDARD.derive(eror_text="coded")


def test_a_contract_is_frozen() -> None:
    with pytest.raises(AttributeError):
        STANDARD.text = "own"  # type: ignore[misc]  # the subject


def test_a_contract_can_be_encoded_and_decoded() -> None:
    assert msgspec.json.decode(msgspec.json.encode(ALIGNED), type=Contract) == ALIGNED


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"http": "bogus"}, "http='bogus' should be one of mcp, rest, envelope, problem"),
        ({"text": "words"}, "text='words' should be one of json, json_first"),
        ({"error_text": "codd"}, "error_text='codd' should be one of message, prefixed"),
        ({"route": "api"}, "route='api' should be a path such as '/functions/' or '/'"),
        ({"route": "/api"}, "route='/api' should be a path"),
        ({"wrap_objects": "no"}, "wrap_objects='no' should be of type bool"),
        ({"masked": None}, "masked=None should be of type str"),
        ({"tool_prefix": "my tools "}, "tool_prefix='my tools ' should be made of"),
        ({"always_200": True}, "always_200 needs http='mcp' or http='envelope'"),
    ],
)
def test_a_value_that_a_contract_cannot_have_is_refused_when_it_is_made(
    members: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Contract(name="mine", **members)
    with pytest.raises(ValueError, match=message):
        STANDARD.derive(**members)


def test_a_contract_has_a_name() -> None:
    with pytest.raises(ValueError, match="name='' should be a non-empty string"):
        Contract(name="")


def test_a_route_of_one_s_own_is_accepted() -> None:
    assert Contract(name="mine", route="/api/v1/").route == "/api/v1/"
