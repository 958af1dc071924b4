"""The page on the bridge agrees with its types, and the types with the script."""

from __future__ import annotations

import re
from importlib.resources import files

from tests.conftest import ROOT
from tests.docs.test_tables import rows
from tests.widgets.conftest import HostPage

PAGE = ROOT / "docs" / "guides" / "widget-bridge.md"
TYPES = (files("answerback.protocol") / "widgets" / "bridge.d.ts").read_text()
SCRIPT = (files("answerback.protocol") / "widgets" / "bridge.js").read_text()


def members(interface: str) -> list[str]:
    """The members of an interface in the types."""
    body = TYPES.partition(f"export interface {interface} {{\n")[2].partition("\n}")[0]
    return re.findall(r"^  (?:readonly )?(\w+)[?(<:]", body, re.MULTILINE)


def test_the_page_lists_the_members_of_the_types() -> None:
    shown = [re.split(r"\W", row[0])[0] for row in rows(PAGE, "member")]

    assert sorted(shown) == sorted(members("App"))


def test_the_page_lists_the_options_of_the_types() -> None:
    assert [row[0] for row in rows(PAGE, "option")] == members("Options")


def test_the_page_lists_the_codes_of_the_script() -> None:
    own = re.findall(r'(?:HostError|failed)\("([A-Z_]+)"', SCRIPT)
    own += re.findall(r'given\.code : "([A-Z_]+)"', SCRIPT)

    assert {row[0] for row in rows(PAGE, "code")} == set(own)


def test_every_member_of_the_types_is_in_the_script(host: HostPage) -> None:
    host.show()

    missing = [name for name in members("App") if not host.run(f"'{name}' in app")]

    assert members("App") != []
    assert missing == []


def test_every_option_of_the_types_is_read_by_the_script() -> None:
    unread = [name for name in members("Options") if not re.search(rf"\b{name}\b", SCRIPT)]

    assert unread == []
