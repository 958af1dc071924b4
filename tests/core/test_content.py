"""Content blocks: the values they accept and those they refuse."""

from pathlib import Path
from typing import Any

import pytest

from answerback import Annotations, Audio, Embedded, Image, Link, Text, success
from answerback.core.content import Block


@pytest.mark.parametrize("priority", [0, 0.5, 1, 1.0])
def test_priority_is_from_0_to_1(priority: float) -> None:
    assert Annotations(priority=priority).priority == priority


@pytest.mark.parametrize("priority", [-0.1, 1.1, 5, float("nan"), float("inf")])
def test_any_other_priority_is_refused(priority: float) -> None:
    with pytest.raises(ValueError, match="priority must be between 0 and 1, not"):
        Annotations(priority=priority)


def test_audience_is_user_assistant_or_both() -> None:
    nobody: Any = ("everyone",)

    assert Annotations(audience=("user", "assistant")).audience == ("user", "assistant")
    with pytest.raises(ValueError, match="audience is 'user', 'assistant' or both, not"):
        Annotations(audience=nobody)


@pytest.mark.parametrize(
    "moment", ["2026-01-01", "2026-01-01T10:00:00Z", "2026-01-01T10:00:00.5+02:00"]
)
def test_last_modified_is_iso_8601(moment: str) -> None:
    assert Annotations(last_modified=moment).last_modified == moment


@pytest.mark.parametrize("moment", ["", "yesterday", "1.1.2026", "2026-13-01"])
def test_any_other_last_modified_is_refused(moment: str) -> None:
    with pytest.raises(ValueError, match="lastModified must be ISO 8601, not"):
        Annotations(last_modified=moment)


@pytest.mark.parametrize("kind", [Image, Audio])
def test_media_have_bytes_with_a_media_type_or_a_url(kind: type[Image] | type[Audio]) -> None:
    assert kind(b"x", "image/png").data == b"x"
    assert kind(url="https://example.com/a").url == "https://example.com/a"
    assert kind(url="https://example.com/a", mime="image/png").mime == "image/png"
    assert kind(b"", "image/png").data == b""


@pytest.mark.parametrize("kind", [Image, Audio])
@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "needs a url, or data and a mime such as 'image/png'"),
        ({"data": b"x"}, "needs a url, or data and a mime"),
        ({"data": b"x", "mime": "png"}, "needs a url, or data and a mime"),
        ({"data": b"x", "mime": "image/png", "url": "a:b"}, "needs either data or url, not both"),
    ],
)
def test_media_with_both_bytes_and_a_url_or_neither_are_refused(
    kind: Any, given: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**given)


@pytest.mark.parametrize("data", [bytearray(b"x"), None, 5])
def test_media_data_other_than_bytes_are_refused(data: Any) -> None:
    with pytest.raises(TypeError, match=f"Image data must be bytes, not {type(data).__name__}"):
        Image(data, "image/png")


def test_a_files_media_type_comes_from_its_name(tmp_path: Path) -> None:
    picture, sound = tmp_path / "a.png", tmp_path / "a.mp3"
    picture.write_bytes(b"picture")
    sound.write_bytes(b"sound")

    assert Image.open(picture, alt="a dot") == Image(b"picture", "image/png", alt="a dot")
    assert Audio.open(str(sound)) == Audio(b"sound", "audio/mpeg")


def test_a_file_with_an_unknown_extension_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "picture.unheardof"
    path.write_bytes(b"x")

    with pytest.raises(ValueError, match=r"no media type is known for .*; pass data and mime"):
        Image.open(path)


def test_a_missing_file_raises_file_not_found_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        Image.open(tmp_path / "none.png")


def test_an_embedded_resource_has_either_text_or_blob() -> None:
    assert Embedded("a:b", text="").text == ""
    assert Embedded("a:b", blob=b"").blob == b""
    with pytest.raises(ValueError, match="Embedded needs either text or blob"):
        Embedded("a:b")
    with pytest.raises(ValueError, match="Embedded needs either text or blob"):
        Embedded("a:b", text="a", blob=b"a")


def test_an_embedded_blob_is_bytes_or_base64_text() -> None:
    number: Any = 5

    assert Embedded("a:b", blob="YWJj") == Embedded("a:b", blob=b"abc")
    with pytest.raises(TypeError, match="Embedded blob must be bytes, not int"):
        Embedded("a:b", blob=number)
    with pytest.raises(ValueError, match="Embedded blob is a str that is not base64; pass bytes"):
        Embedded("a:b", blob="<svg/>")


@pytest.mark.parametrize(
    ("block", "type_in_json"),
    [
        (Text("a"), "text"),
        (Image(b"x", "image/png"), "image"),
        (Audio(b"x", "audio/wav"), "audio"),
        (Link("a:b", "a"), "resource_link"),
        (Embedded("a:b", text="a"), "resource"),
    ],
)
def test_the_type_of_a_block_is_that_of_its_json(block: Block, type_in_json: str) -> None:
    sent = success(content=[block]).to("mcp")["content"][-1]

    assert block.type == sent["type"] == type_in_json
    assert "type" not in block.__struct_fields__


def test_every_block_takes_annotations_and_meta_and_is_frozen() -> None:
    notes: dict[str, Any] = {"annotations": Annotations(priority=1), "meta": {"a": 1}}
    blocks: list[Any] = [
        Text("a", **notes),
        Image(b"x", "image/png", **notes),
        Audio(b"x", "audio/wav", **notes),
        Link("a:b", "a", **notes),
        Embedded("a:b", text="a", **notes),
    ]

    for block in blocks:
        assert (block.annotations, block.meta) == (notes["annotations"], {"a": 1})
        with pytest.raises(AttributeError):
            block.meta = None


def test_the_kind_of_a_link_is_url_by_default() -> None:
    assert Link("a:b", "a").kind == "url"
    assert Link("a:b", "a", kind="file", mime="text/plain").kind == "file"
