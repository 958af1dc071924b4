"""The texts in a reply's content: they are cut as a list of texts is, and kept as one whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from ..core.content import Block, Embedded, Text, changed_block
from ..core.reply import Cut
from .pieces import FEW, CutPlan, Single
from .value_schema import Schema, ValueSchemas

CONTENT = "content[]"
"""The path of all texts; a member of data can hardly have this name."""
_ALL_STAY: Schema = {"prefixItems": []}

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[str]).decode


class ContentTexts:
    """The texts of blocks: of `Text`, and of embedded files without a form of their own."""

    def __init__(self, content: Sequence[Block]) -> None:
        self._content = content
        self._texts = dict(_texts(content))
        self._indexes = list(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def whole(self) -> bytes:
        """The JSON of all texts, as a list; of a single text, the text."""
        texts = list(self._texts.values())
        return _encode(texts[0] if len(texts) == 1 else texts)

    def parts(self) -> list[Single]:
        """Return the part that may be cut, if there are texts."""
        if not self._texts:
            return []
        encoded = _encode(list(self._texts.values()))
        plan = CutPlan(ValueSchemas({}), cuts_texts=True)
        schema = _ALL_STAY if len(self) <= FEW else {}
        return [Single(CONTENT, plan.piece(CONTENT, schema, encoded))]

    def content_with(self, kept: bytes | None) -> tuple[Block, ...]:
        """Return the blocks with the texts that were kept, without those that were left out."""
        if kept is None:
            return tuple(self._content)
        texts = dict(zip(self._indexes, _decode(kept), strict=False))
        return tuple(
            changed_block(block, text=texts[index]) if index in texts else block
            for index, block in enumerate(self._content)
            if index in texts or index not in self._texts
        )

    def path_in_whole(self, cut: Cut) -> str:
        """Return where a text is in the whole; empty for all of it."""
        return "" if len(self) == 1 else cut.path.removeprefix(CONTENT).removeprefix(".")

    def named(self, cut: Cut) -> Cut:
        """Return the cut with the index of its block, such as `content[2]`."""
        if cut.path == CONTENT:
            return cut
        index = self._indexes[int(cut.path.removeprefix(f"{CONTENT}."))]
        return msgspec.structs.replace(cut, path=f"content[{index}]")


def _texts(content: Sequence[Block]) -> Iterator[tuple[int, str]]:
    for index, block in enumerate(content):
        match block:
            case Text(text=text):
                yield index, text
            case Embedded(text=str(text), mime=mime) if (mime or "text/").startswith("text/"):
                yield index, text
