"""The wheel and the source distribution have what they must have; `make package` installs them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from tests.package.distributions import (
    ROOT,
    Distributions,
    build,
    check_metadata,
    faults,
    wheel_files,
    wheel_metadata,
)
from tests.package.interpreters import declared_versions

import answerback

ADDRESS = "https://github.com/answerback/answerback"
# The build takes three seconds on a quiet machine.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Distributions:
    return build(tmp_path_factory.mktemp("distributions"))


def test_the_wheel_has_the_library_and_the_source_distribution_all_that_git_tracks(
    distributions: Distributions,
) -> None:
    """Contract: the tests of the source distribution can run, and users install no tests."""
    assert faults(distributions, with_new=True) == []


def test_the_wheel_has_the_licences_of_all_the_code_in_it(distributions: Distributions) -> None:
    metadata = wheel_metadata(distributions.wheel)
    names = {Path(name).name for name in wheel_files(distributions.wheel) if "/licenses/" in name}

    assert metadata["License-Expression"] == "MIT AND Apache-2.0"
    assert names == {"LICENSE", "htm.txt", "preact.txt"}


def test_the_metadata_are_valid_and_those_of_this_version(distributions: Distributions) -> None:
    metadata = wheel_metadata(distributions.wheel)

    assert check_metadata(distributions) == ""
    assert metadata["Version"] == answerback.__version__
    assert metadata["Requires-Python"] == f">={declared_versions()[0]}"


def test_every_link_of_the_description_leads_somewhere_outside_the_repository(
    distributions: Distributions,
) -> None:
    """Contract: PyPI shows the README without the files beside it."""
    text = str(wheel_metadata(distributions.wheel).get_payload())
    links = re.findall(r'\]\(([^)]+)\)|\b(?:src|srcset)="([^"]+)"', text)

    targets = [one or other for one, other in links]
    assert len(targets) > 10
    assert [each for each in targets if not each.startswith("https://")] == []
    assert f"{ADDRESS}/blob/v{answerback.__version__}/CONTRIBUTING.md" in targets


def test_every_address_of_the_project_is_below_one_repository() -> None:
    urls = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]

    assert urls["Source"] == ADDRESS
    assert [each for each in urls.values() if not f"{each}/".startswith(f"{ADDRESS}/")] == []


def test_the_changelog_has_a_section_about_this_version() -> None:
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert answerback.__version__ in headings
