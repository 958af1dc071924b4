"""Docstrings in the Google, NumPy and Sphinx styles."""

from time import thread_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.tools.docstrings import Docstring, parse

GOOGLE = """Transfer money between two accounts.

    The transfer is booked at once
    and cannot be undone.

    Args:
        source (str): Where the money comes from.
        target (str, optional): Where it goes,
            by default the savings account.
        split (dict[str, Callable[[int], (int | None)]]): Shares: by name.
        silent:
        *notes: Anything to print on the statement.
        **options (Any): Passed on.

    Returns:
        dict[str, int]: The balances,
        by account.

    Raises:
        LookupError: If an account is unknown.
        errors.Closed: If it is closed.

    Example:
        >>> transfer("a", "b")
"""

NUMPY = """
    Scale a vector.

    Works in place.

    Parameters
    ----------
    x, y : float
        The components,
        in metres.
    factor : {1, 2}, optional

        How much.
    unit
    *rest
        What is left.

    Returns
    -------
    float
        The new length.

    Raises
    ------
    ValueError
        If the factor is zero.

    Examples
    --------
    >>> scale(1, 2)
    """

SPHINX = """Find a city.

    Only large ones are known.

    :param name: The name,
        in any language.
    :param int limit: How many
    at most.
    :param dict[str, int] weights: What counts.
    :param quiet:
    :type name: str
    :returns: The cities.
    :rtype: list[str]
    :raises LookupError, ValueError: If there is none.
"""


def test_a_google_docstring_is_parsed() -> None:
    assert parse(GOOGLE) == Docstring(
        description=(
            "Transfer money between two accounts.\n\n"
            "The transfer is booked at once\nand cannot be undone.\n\n"
            'Example:\n    >>> transfer("a", "b")'
        ),
        arguments={
            "source": "Where the money comes from.",
            "target": "Where it goes,\nby default the savings account.",
            "split": "Shares: by name.",
            "silent": "",
            "notes": "Anything to print on the statement.",
            "options": "Passed on.",
        },
        raises={
            "LookupError": "If an account is unknown.",
            "errors.Closed": "If it is closed.",
        },
        returns="Returns:\n    dict[str, int]: The balances,\n    by account.",
    )


def test_a_numpy_docstring_is_parsed() -> None:
    assert parse(NUMPY) == Docstring(
        description=("Scale a vector.\n\nWorks in place.\n\nExamples\n--------\n>>> scale(1, 2)"),
        arguments={
            "x": "The components,\nin metres.",
            "y": "The components,\nin metres.",
            "factor": "How much.",
            "unit": "",
            "rest": "What is left.",
        },
        raises={"ValueError": "If the factor is zero."},
        returns="Returns\n-------\nfloat\n    The new length.",
    )


def test_a_sphinx_docstring_is_parsed() -> None:
    assert parse(SPHINX) == Docstring(
        description="Find a city.\n\nOnly large ones are known.",
        arguments={
            "name": "The name,\nin any language.",
            "limit": "How many\nat most.",
            "weights": "What counts.",
            "quiet": "",
        },
        raises={"LookupError": "If there is none.", "ValueError": "If there is none."},
        returns="Returns: The cities.",
    )


@pytest.mark.parametrize("doc", [None, "", "   ", "\n\n\t\n"])
def test_an_empty_docstring_has_no_parts(doc: str | None) -> None:
    assert parse(doc) == Docstring()


def test_a_one_line_docstring_is_its_own_description() -> None:
    assert parse("  Add two numbers. ") == Docstring("Add two numbers.")


def test_a_paragraph_over_two_lines_keeps_its_lines() -> None:
    parsed = parse("Add two numbers\n    and round.\n\n    Slowly.")

    assert parsed.description == "Add two numbers\nand round.\n\nSlowly."


@pytest.mark.parametrize(
    "prose",
    [
        "Note: the file is deleted.",
        "Delete it.\n\nNote:\nthis is final.",
        "Delete it.\n\nNote:\n    This is final.",
        "Delete it.\n\nReturns: nothing.",
        "Delete it.\n\nExample:\nsee above.",
        "Delete it.\n\nUsage\n-----\nOnce.",
        "Talk to :class:`Server`.\n\n:class:`Server` answers.",
        "Args:",
        "Raises an error.\nReturns nothing: ever.",
        "Pick one:\n\n- a: first\n- b: second",
    ],
)
def test_prose_that_looks_like_a_section_is_kept(prose: str) -> None:
    assert parse(prose).description == prose


def test_notes_and_paragraphs_after_a_section_stay_in_the_description() -> None:
    parsed = parse(
        """Delete it.

        Args:
            path: What to delete.
        Warning:
            There is no way back.

        Returns:
            Nothing.

        Ask first.
        """
    )

    assert parsed.description == "Delete it.\n\nWarning:\n    There is no way back.\n\nAsk first."
    assert parsed.arguments == {"path": "What to delete."}


def test_prose_after_a_numpy_section_stays_in_the_description() -> None:
    parsed = parse(
        "Go.\n\nParameters\n----------\nx : int\n    How far.\n\nThen stop, always.\n\n"
        "Notes\n-----\nMind the gap."
    )

    assert parsed.arguments == {"x": "How far."}
    assert parsed.description == "Go.\n\nThen stop, always.\n\nNotes\n-----\nMind the gap."


def test_tabs_and_irregular_indentation_are_parsed() -> None:
    parsed = parse("Go.\n\n\tArgs:\n\t\t\tx: How\n\t\t\t\tfar.\n\t\ty: How high.\n  ")

    assert parsed.arguments == {"x": "How\nfar.", "y": "How high."}
    assert parsed.description == "Go."


def test_a_list_in_an_argument_keeps_its_lines() -> None:
    parsed = parse(
        """Search.

        Args:
            query: The words; operators:
                - AND, OR
                - title:word
                    with indentation

                More text.
            limit: How many.
        """
    )

    assert parsed.arguments == {
        "query": (
            "The words; operators:\n- AND, OR\n- title:word\n    with indentation\n\nMore text."
        ),
        "limit": "How many.",
    }


def test_arguments_without_indentation_are_found() -> None:
    parsed = parse("Go.\n\nArgs:\nx: How far.\ny (int): How high.\nReturns:\n    int: Steps.")

    assert parsed.arguments == {"x": "How far.", "y": "How high."}


def test_windows_line_endings_make_no_difference() -> None:
    assert parse(GOOGLE.replace("\n", "\r\n")) == parse(GOOGLE)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("*args", "args"),
        (r"\*args", "args"),
        (r"\*\*kwargs", "kwargs"),
        ("`x`", "x"),
        ("größe", "größe"),
        ("名前", "名前"),
    ],
)
def test_argument_names_lose_their_markup(written: str, name: str) -> None:
    google = parse(f"Go.\n\nArgs:\n    {written}: Why.")
    numpy = parse(f"Go.\n\nParameters\n----------\n{written} : int\n    Why.")
    sphinx = parse(f"Go.\n\n:param {written}: Why.")

    assert google.arguments == numpy.arguments == sphinx.arguments == {name: "Why."}


@pytest.mark.parametrize("written", ["The sum.", "int: The sum.", "https://example.com"])
def test_a_returns_section_is_not_part_of_the_description(written: str) -> None:
    parsed = parse(f"Go.\n\nReturns:\n    {written}")

    assert parsed == Docstring("Go.", returns=f"Returns:\n    {written}")


def test_a_colon_within_a_word_does_not_begin_an_argument() -> None:
    parsed = parse("Go.\n\nArgs:\n    x: See\n    http://example.com at\n    10:30 sharp.")

    assert parsed.arguments == {"x": "See\nhttp://example.com at\n10:30 sharp."}


PIECES = st.sampled_from(
    [
        "Args:",
        "Returns:",
        "Parameters",
        "-----",
        ":param x:",
        "x: y",
        "(",
        ")",
        "[",
        " ",
        "\t",
        "\n",
    ]
)


@given(st.text() | st.lists(PIECES | st.text(max_size=3)).map("".join))
def test_any_text_can_be_parsed(doc: str) -> None:
    assert isinstance(parse(doc), Docstring)


@given(st.lists(st.text("ab :\n", min_size=1).map(str.strip), min_size=1))
def test_every_word_of_plain_prose_is_kept(paragraphs: list[str]) -> None:
    words = " ".join(paragraphs).split()

    assert parse("Go.\n\n" + "\n\n".join(paragraphs)).description.split() == ["Go.", *words]


HOSTILE = [
    "Args:\n",
    "Args:\n    x",
    "[",
    "(",
    ": ",
    "*",
    ":param ",
    "x, ",
    "x\n---\n",
    "\t",
    " \n",
]


@pytest.mark.parametrize("piece", HOSTILE)
@pytest.mark.parametrize(
    "start", ["", "Args:\n  ", "Returns:\n  ", "Parameters\n-----\n", ":param x"]
)
def test_hostile_text_is_parsed_in_linear_time(start: str, piece: str) -> None:
    """Quadratic parsing of these texts would take far longer than the limit."""
    doc = "Go.\n\n" + start + piece * (200_000 // len(piece)) + "!"

    began = thread_time()
    parse(doc)

    assert thread_time() - began < 5
