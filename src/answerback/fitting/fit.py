"""Fits a reply into its tool's budget: cuts it, says so, and stores the full reply."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ..contract import Contract
from ..core.content import Block, Embedded, Link, Text, changed_block
from ..core.list_page import StoredPart
from ..core.reply import Cut, Reply, failure
from ..core.shape import Shape
from ..dialects import mcp
from ..dialects.reply_text import data_text
from ..tools.paging import CursorAfter
from ..tools.tool import Tool
from ..types.problems import InvalidOutput
from .cut_lists import ITEMS, first_part
from .pieces import (
    FEW,
    UTF8_BYTES,
    CutPlan,
    Schema,
    Single,
    ValueSchemas,
    characters,
    cut_largest,
    decode_members,
)
from .ranges import ReplyPart
from .reply_store import PREFIX, range_uri

_SHOWN = 5
"""How many cuts a reply describes individually."""
_TUPLE: Schema = {"prefixItems": []}
"""The schema of a list that keeps all its items."""
_WRAPPING = 20
"""An upper bound on the characters that a shape such as `{"result":…}` adds to the data."""
CONTENT = "content[]"
"""The path that stands for all text; reserved, and unlikely to be a member's name."""
Keep: TypeAlias = Callable[[bytes], Awaitable[str | None]]
"""Stores the JSON of a full reply and returns its URI, or None if it cannot be stored."""
_PREVIEW = 1000
"""How many characters to show of a reply that cannot be cut."""
_BEGINS = "It begins: "
_SEEN = ("text", "uri", "name", "title", "description")
"""The members of a block that a model may read."""
_NO_DIGITS = str.maketrans("123456789", "000000000")

_replace = msgspec.structs.replace
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[str]).decode


class _Counts(msgspec.Struct):
    total: int | None = None
    next: str | None = None


_counts = msgspec.json.Decoder(_Counts)


class Paging(NamedTuple):
    """How to continue the call's page."""

    part: StoredPart | None
    """The stored part that the page starts at; None if the tool has just returned the page."""
    cursor_after: CursorAfter
    sizes: Sequence[int] = ()
    """The size in bytes of each stored item, starting at the part; empty for a stored reply."""


async def fit(
    reply: Reply[Any],
    tool: Tool,
    shape: Shape,
    keep: Keep,
    paging: Callable[[], Paging] | None = None,
) -> Reply[Any]:
    """Return a reply that fits the tool's budget, or a TOO_LARGE error; leave errors unchanged.

    *keep* stores the full reply if it is too large. *paging* is for a tool that returns pages.
    """
    budget = tool.budget
    if budget is None or reply.error is not None:
        return reply
    if not is_over(reply, shape, tool.contract, budget):
        return reply
    large = LargeReply(reply, tool, shape, budget, keep, None if paging is None else paging())
    return await large.cut_lists() or await large.cut_texts() or await large.refused()


class LargeReply:
    """A reply that is larger than its budget."""

    def __init__(
        self,
        reply: Reply[Any],
        tool: Tool,
        shape: Shape,
        budget: int,
        keep: Keep,
        paging: Paging | None,
    ) -> None:
        self._reply = reply
        self._tool = tool
        self._shape = shape
        self._budget = budget
        self._keep = keep
        self._paging = paging
        self._part = None if paging is None else paging.part
        self._texts = ContentTexts(reply.content)
        self._repeats_json = repeats_data(reply, shape, tool.contract) and (
            not (reply.encoded or b"").startswith(b'"')
        )
        self._uris: dict[str, str | None] = {}

    async def cut_lists(self) -> Reply[Any] | None:
        """Return the reply with its lists cut, or None if that is not enough."""
        return await self._cut(self._data_part(cuts_texts=False))

    async def cut_texts(self) -> Reply[Any] | None:
        """Return the reply with its lists and text cut, or None if that is not enough."""
        texts = self._texts.parts()
        data = self._data_part(cuts_texts=True)
        # If the author wrote the text, it has nothing in common with the data.
        if texts and self._tool.contract.text in ("own", "readable"):
            return await self._cut(data, texts)
        return await self._cut([*data, *texts])

    def _data_part(self, *, cuts_texts: bool) -> list[Single]:
        encoded = self._reply.encoded
        if encoded is None:
            return []
        if self._tool.returns.declared:
            schema = self._tool.data_schema
        else:
            schema = _TUPLE if self._shape.wrapping == "spread" else {}
        plan = CutPlan(ValueSchemas(schema), cuts_texts)
        return [Single("", plan.piece("", schema, encoded))]

    async def _cut(self, *groups: list[Single]) -> Reply[Any] | None:
        """Return the reply with each group of parts cut to the same total size."""
        room, added = self._budget, 0
        measured: str | None = None
        while all(sum(part.smallest for part in parts) <= room for parts in groups):
            cuts: list[Cut] = []
            shortened: dict[str, bytes] = {}
            for parts in groups:
                shortened |= cut_largest(parts, room, cuts)
            encoded = shortened.get("", self._reply.encoded)
            if self._paging is not None and encoded is not None:
                encoded, cuts = await self._with_cursor(encoded, cuts)
            described = [await self._note(cut) for cut in cuts]
            text = "\n".join(note_lines(described))
            content = self._texts.content_with(shortened.get(CONTENT))
            size = 0 if encoded is None else len(encoded.decode())
            # If both halves repeat the data's JSON, all else keeps its size as long as the notes
            # differ only in their digits: so the result is written once, and then only counted.
            form = text.translate(_NO_DIGITS)
            if form != measured or not self._repeats_json:
                fitted = self._with_notes(encoded, content, described, text)
                added = sent_size(fitted, self._shape, self._tool.contract) - size
                measured = form
            sent = size + added
            if sent <= self._budget:
                fitted = self._with_notes(encoded, content, described, text)
                return self._checked(fitted) if "" in shortened else fitted
            # Some contracts indent the data, which makes it longer than its compact JSON.
            sizes = {name: len(value.decode()) for name, value in shortened.items()}
            used = max(sum(sizes.get(part.name, part.size) for part in parts) for parts in groups)
            used = min(room, used)
            room = min(used - 1, used * self._budget // sent)
        return None

    async def _with_cursor(self, encoded: bytes, cuts: list[Cut]) -> tuple[bytes, list[Cut]]:
        """Return a page's JSON with the cursor for the items that were cut off, and the cuts."""
        cut = next((each for each in cuts if each.path == ITEMS), None)
        paging = self._paging
        if paging is None or cut is None:
            return encoded, cuts
        if paging.part is None and (uri := await self._uri("")) is not None:
            body = self._reply.encoded or b""
            items = bytes(decode_members(body)[ITEMS])
            part, sizes = first_part(uri.removeprefix(PREFIX), ITEMS, body, items)
            self._paging = paging = paging._replace(part=part, sizes=sizes)
        following = None
        if paging.part is not None:
            following = paging.cursor_after(paging.part, cut.returned, paging.sizes)
        page = decode_members(encoded) | {"returned": cut.returned, "next": following}
        if self._part is not None:
            count = self._part.count or cut.total + self._part.offset
            of_list = _replace(cut, total=count)
            cuts = [of_list if each is cut else each for each in cuts]
        return _encode(page), cuts

    def _with_notes(
        self,
        encoded: bytes | None,
        content: tuple[Block, ...],
        described: Sequence[CutNote],
        text: str,
    ) -> Reply[Any]:
        """Return the reply with the shortened data and content, and *text* about the cuts."""
        reply, shape, contract = self._reply, self._shape, self._tool.contract
        # If the author wrote no text, the note would replace the data's text.
        has_texts = any(isinstance(block, Text) for block in reply.content)
        is_text_only = not shape.structured or contract.text in ("own", "readable")
        if encoded is not None and is_text_only and not has_texts:
            content = (Text(data_text(encoded, shape, contract, is_part=True)), *content)
        if described:
            uris = dict.fromkeys(each.uri for each in described if each.uri is not None)
            content = (*content, Text(text), *map(link, uris))
        cuts = tuple(each.cut for each in described)
        return _replace(reply, content=content, encoded=encoded, cuts=cuts)

    async def _note(self, cut: Cut) -> CutNote:
        if cut.path.startswith(CONTENT):
            named = self._texts.named(cut)
            is_all = self._reply.encoded is None and (len(self._texts) == 1 or cut.path == CONTENT)
            path = self._texts.path_in_reply(cut)
            return CutNote(named, await self._uri(CONTENT), path, "" if is_all else named.path)
        path, part = cut.path, self._part
        if part is not None and path.startswith(f"{ITEMS}."):
            # The stored reply has the page's items at other indexes.
            index, dot, below = path.removeprefix(f"{ITEMS}.").partition(".")
            path = f"{part.path}.{int(index) + part.offset}{dot}{below}"
        before = in_all = None
        if self._paging is not None and path == ITEMS:
            before = 0 if part is None else part.offset
            counts = _counts.decode(self._reply.encoded or b"{}")
            is_only_page = counts.total is None and counts.next is None
            in_all = cut.total if is_only_page else counts.total
        return CutNote(cut, await self._uri(""), path, cut.path, before, in_all)

    async def _uri(self, path: str) -> str | None:
        """Return the URI of the full data, or of the full text in the content."""
        if not path and self._part is not None:
            return PREFIX + self._part.id
        if path not in self._uris:
            body = self._texts.body if path else self._reply.encoded
            self._uris[path] = await self._keep(body or b"null")
        return self._uris[path]

    def _checked(self, reply: Reply[Any]) -> Reply[Any] | None:
        """Return the reply with the cut data, or None if the type does not accept it."""
        assert reply.encoded is not None
        data = msgspec.json.decode(reply.encoded)
        if self._tool.returns.declared:
            try:
                encoded, typed = self._tool.output.encode(data)
            except InvalidOutput:
                return None
            # A model's computed fields may differ; keep the data as sent.
            data = typed if encoded == reply.encoded else data
        return _replace(reply, data=data)

    async def refused(self) -> Reply[Any]:
        """Return the error for a reply that cannot be cut without violating its schema."""
        reply, contract = self._reply, self._tool.contract
        size = sent_size(reply, self._shape, contract)
        body = reply.encoded or self._texts.body
        uri = await self._uri(CONTENT if reply.encoded is None else "")
        error = failure(
            f"The reply has {size:,} characters, more than the {self._budget:,} allowed, "
            "and its schema does not let it be cut to that size",
            code="TOO_LARGE",
            details={"characters": size, "budget": self._budget},
            hint="ask for less" if uri is None else f"ask for less, or read the full reply: {uri}",
        )
        links = () if uri is None else (link(uri),)
        error = _replace(error, content=links)
        room = self._budget - sent_size(error, self._shape, contract) - len(_BEGINS)
        preview = body[: UTF8_BYTES * _PREVIEW].decode(errors="ignore")[: min(room, _PREVIEW)]
        if room <= 0:
            return error
        return _replace(error, content=(Text(_BEGINS + preview), *links))


class ContentTexts:
    """The text in `Text` blocks and embedded text files."""

    def __init__(self, content: Sequence[Block]) -> None:
        self._content = content
        self._texts = dict(_texts(content))
        self._indexes = list(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def body(self) -> bytes:
        """The text as a JSON list, or as a JSON string if there is only one block."""
        texts = list(self._texts.values())
        return _encode(texts[0] if len(texts) == 1 else texts)

    def parts(self) -> list[Single]:
        """Return the part that can be cut, if there is any text."""
        if not self._texts:
            return []
        encoded = _encode(list(self._texts.values()))
        plan = CutPlan(ValueSchemas({}), cuts_texts=True)
        schema = _TUPLE if len(self) <= FEW else {}
        return [Single(CONTENT, plan.piece(CONTENT, schema, encoded))]

    def content_with(self, kept: bytes | None) -> tuple[Block, ...]:
        """Return the blocks with their shortened text, without those that were dropped."""
        if kept is None:
            return tuple(self._content)
        texts = dict(zip(self._indexes, _decode(kept), strict=False))
        return tuple(
            changed_block(block, text=texts[index]) if index in texts else block
            for index, block in enumerate(self._content)
            if index in texts or index not in self._texts
        )

    def path_in_reply(self, cut: Cut) -> str:
        """Return the path of a block's text in the stored body; empty for the entire body."""
        return "" if len(self) == 1 else cut.path.removeprefix(CONTENT).removeprefix(".")

    def named(self, cut: Cut) -> Cut:
        """Return the cut with its block's index in the path, such as `content[2]`."""
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


class CutNote(NamedTuple):
    """A cut, and where to find the full reply."""

    cut: Cut
    uri: str | None
    """The URI of the full reply, or None if it is not stored."""
    path: str
    """Where the list or the text is in the full reply."""
    name: str
    """The name shown to the reader; empty for the entire reply."""
    before: int | None = None
    """For a page, the number of items on earlier pages; its `next` leads to the rest."""
    in_all: int | None = None
    """For a page, the number of items on all pages; None if unknown."""


def note_lines(cuts: Sequence[CutNote]) -> list[str]:
    """Return a line for each cut; the last one counts those that are not described."""
    lines = [_line(each) for each in cuts[:_SHOWN]]
    if more := len(cuts[_SHOWN:]):
        lines.append(f"Other lists and text blocks that were cut: {more:,}.")
    return lines


def _line(note: CutNote) -> str:
    cut, before, in_all = note.cut, note.before, note.in_all
    if before is None:
        where = f' of "{note.name}"' if note.name else ""
        shown = f"Showing {cut.returned:,} of {cut.total:,} {cut.unit}{where}."
    elif in_all == cut.total:
        shown = f"Showing items {before + 1:,} to {before + cut.returned:,} of {in_all:,}."
    else:
        # The list is one of the tool's own pages, so the number of items before it is unknown.
        of = "" if in_all is None else f" of {in_all:,}"
        shown = f"Showing {cut.returned:,}{of} items."
    return f"{shown} {how_to_continue(note)}"


def how_to_continue(note: CutNote) -> str:
    """Return the sentence that says how to get the rest after a cut."""
    if note.uri is None:
        return "The rest was not kept: ask for less."
    if note.before is not None:
        return "For more items, repeat the call with this page's next as the cursor."
    cut = note.cut
    rest = ReplyPart(
        path=note.path,
        offset=cut.returned,
        limit=cut.returned,
        unit="lines" if cut.unit == "lines" else "characters",
    )
    return f"The rest: {range_uri(note.uri, rest)}"


def link(uri: str) -> Link:
    return Link(uri, "the whole reply", mime="application/json")


def sent_size(reply: Reply[Any], shape: Shape, contract: Contract) -> int:
    """Return the number of characters in the reply's larger half."""
    sent = mcp.result_of(reply, shape, contract)
    texts = [block[name] for block in sent["content"] for name in _SEEN if name in block]
    texts += [block["resource"].get("text", "") for block in sent["content"] if "resource" in block]
    structured = sent.get("structuredContent")
    data = 0 if structured is None else len(_encode(structured).decode())
    return max(sum(map(len, texts)), data)


def is_over(reply: Reply[Any], shape: Shape, contract: Contract, budget: int) -> bool:
    """Return whether either half of the reply has more than *budget* characters."""
    # For most replies, this can be decided without writing them.
    if reply.encoded is not None and shape.structured:
        size = characters(reply.encoded)
        if size > budget:
            return True
        is_bare = repeats_data(reply, shape, contract) and shape.wrapping != "spread"
        if is_bare and size + _WRAPPING <= budget:
            return False
    return sent_size(reply, shape, contract) > budget


def repeats_data(reply: Reply[Any], shape: Shape, contract: Contract) -> bool:
    """Return whether both halves of the reply hold only its data: as JSON, or as a bare string."""
    is_json = contract.text in ("json", "json_first")
    return reply.encoded is not None and shape.structured and is_json and not reply.content
