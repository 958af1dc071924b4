"""The model providers' published limits on tool definitions, as dated data.

When a provider changes a limit, change it here, with its date and source.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Literal, TypeAlias

import msgspec

from ..types.schema_references import inner_schemas, target

Provider: TypeAlias = Literal["openai", "openai_responses", "anthropic", "gemini"]

_OPENAI_GUIDE = "developers.openai.com/api/docs/guides/structured-outputs"
_CLAUDE_GUIDE = "platform.claude.com/docs/en/build-with-claude/structured-outputs"
_ANNOTATIONS = frozenset({"title", "description"})


class NameRule(msgspec.Struct, frozen=True):
    """The names that a provider accepts: a character class, a length and a first character."""

    characters: str
    length: int
    first: str = ""

    @property
    def pattern(self) -> str:
        """The rule as a regular expression for the whole name."""
        return f"(?=[{self.first or self.characters}])[{self.characters}]{{1,{self.length}}}"


class SchemaRules(msgspec.Struct, frozen=True, kw_only=True):
    """The part of JSON Schema that a provider accepts in one mode."""

    strict: bool = False
    """The provider ensures that arguments match; a schema it cannot enforce is rejected."""
    keywords: frozenset[str] | None = None
    """The constraints to keep; others move into the description. None keeps all."""
    formats: frozenset[str] | None = None
    """The `format` values to keep; None keeps all."""
    all_required: bool = False
    """Every property is required, and an optional one accepts null instead."""
    closed: bool = False
    """`additionalProperties` is false in each object, so maps become lists of pairs."""
    one_of: bool = True
    const: bool = True
    """`const` is accepted, and `enum` may hold true, false and null."""
    tuples: bool = True
    """`prefixItems` is accepted; otherwise, a tuple becomes an object with members item0, item1…"""
    recursion: bool = True
    max_min_items: int | None = None
    """The largest accepted `minItems`; None for no limit."""
    properties: NameRule | None = None


class SetLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits on strict tools, per schema and per request."""

    tools: int | None = None
    """The number of strict tools in a request."""
    optional: int | None = None
    """The number of optional properties in a request."""
    unions: int | None = None
    """The number of properties with a union of types in a request."""
    members: int | None = None
    """The number of properties in one schema."""
    depth: int | None = None
    characters: int | None = None
    """The characters in one schema's property and definition names and enum and const values."""
    enum_values: int | None = None
    large_enum: tuple[int, int] | None = None
    """If a string enum has more values than the first number, the second limits its characters."""


class ProviderRules(msgspec.Struct, frozen=True, kw_only=True):
    """All of one provider's rules, with their date and source."""

    provider: Provider
    read_on: str
    sources: tuple[str, ...]
    names: NameRule
    plain: SchemaRules
    strict: SchemaRules | None = None
    limits: SetLimits = SetLimits()
    max_tools: int | None = None
    long_description: int | None = None
    """The length of a tool description above which some models refuse the request."""
    images: frozenset[str] = frozenset()
    """The image media types accepted in a tool's result, or in the message after it."""
    documents: frozenset[str] = frozenset()
    media_in_errors: bool = True
    """Whether a failed call's result may have images and documents."""


_OPENAI_STRICT = SchemaRules(
    strict=True,
    keywords=_ANNOTATIONS
    | {"pattern", "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"minItems", "maxItems"},
    formats=frozenset(
        {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
    ),
    all_required=True,
    closed=True,
    one_of=False,
    tuples=False,
)
_ANTHROPIC_STRICT = SchemaRules(
    strict=True,
    keywords=_ANNOTATIONS | {"minItems"},
    formats=_OPENAI_STRICT.formats and _OPENAI_STRICT.formats | {"uri"},
    closed=True,
    one_of=False,
    tuples=False,
    recursion=False,
    max_min_items=1,
    properties=NameRule(r"a-zA-Z0-9_.\-", 64),
)
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_PDF = frozenset({"application/pdf"})

OPENAI = ProviderRules(
    provider="openai",
    read_on="2026-11-16",
    sources=(_OPENAI_GUIDE, "openai 3.49.0: types/shared_params/function_definition.py"),
    names=NameRule(r"a-zA-Z0-9_\-", 64),
    plain=SchemaRules(),
    strict=_OPENAI_STRICT,
    limits=SetLimits(
        members=5000,
        depth=10,
        characters=120_000,
        enum_values=1000,
        large_enum=(250, 15_000),
    ),
    max_tools=128,
    # Reported for gpt-4o, o1 and o3-mini in 2025, with the error code string_above_max_length.
    long_description=1024,
    images=_IMAGES,
    documents=_PDF,
)
OPENAI_RESPONSES = msgspec.structs.replace(
    OPENAI,
    provider="openai_responses",
    long_description=None,
    sources=(_OPENAI_GUIDE, "openai 3.49.0: types/responses/function_tool_param.py"),
)
ANTHROPIC = ProviderRules(
    provider="anthropic",
    read_on="2026-11-16",
    sources=(_CLAUDE_GUIDE, "anthropic 2.8.0: lib/_parse/_transform.py"),
    # The reference says 128 characters and older pages say 64: the lower limit is always safe.
    names=NameRule(r"a-zA-Z0-9_\-", 64),
    plain=SchemaRules(properties=NameRule(r"a-zA-Z0-9_.\-", 64)),
    strict=_ANTHROPIC_STRICT,
    limits=SetLimits(tools=20, optional=24, unions=16),
    images=_IMAGES,
    documents=_PDF,
    # The API responds with 400: all content must be of type "text" if "is_error" is true.
    media_in_errors=False,
)
GEMINI = ProviderRules(
    provider="gemini",
    read_on="2026-11-16",
    sources=("google-genai 3.1.0: types.py, FunctionDeclaration and response_json_schema",),
    # The Python types say 128 characters; the Vertex AI REST reference says 64.
    names=NameRule(r"a-zA-Z0-9_.\-", 64, first="a-zA-Z_"),
    plain=SchemaRules(
        keywords=_ANNOTATIONS | {"minItems", "maxItems", "minimum", "maximum"},
        formats=frozenset({"date-time", "date", "time"}),
        one_of=False,
        const=False,
        properties=NameRule("a-zA-Z0-9_", 64, first="a-zA-Z_"),
    ),
    images=frozenset({"image/png", "image/jpeg", "image/webp"}),
    documents=_PDF,
)


_DIGEST = 8
"""How many digest characters distinguish names that would otherwise be the same."""


def fitting_names(names: Iterable[str], rule: NameRule | None) -> dict[str, str]:
    """Return an accepted name for each name; names that are already accepted stay unchanged.

    New names do not depend on the order: if two would be the same, each ends with a digest of its
    original.
    """
    names = list(names)
    if rule is None:
        return {name: name for name in names}
    accepted = re.compile(rule.pattern)
    found = {name: name for name in names if accepted.fullmatch(name)}
    proposed = {}
    for name in names:
        if name not in found:
            # A hostile name may have millions of characters; only the first few are used.
            new = re.sub(f"[^{rule.characters}]", "_", name[: rule.length]) or "_"
            if rule.first and not re.match(f"[{rule.first}]", new):
                new = "_" + new
            proposed[name] = new[: rule.length]
    used = Counter([*found.values(), *proposed.values()])
    for name, new in proposed.items():
        found[name] = new
        if len(name) > rule.length or used[new] > 1:
            digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
            found[name] = f"{new[: rule.length - _DIGEST - 1]}_{digest}"
    return {name: found[name] for name in names}


class SchemaSize(msgspec.Struct):
    """Counts of the parts of a schema that providers limit."""

    members: int = 0
    optional: int = 0
    unions: int = 0
    depth: int = 0
    characters: int = 0
    enum_values: int = 0
    large_enum: int = 0
    """The number of characters in the longest string enum that counts as large."""


class StrictLimits:
    """One request's limits; each strict tool uses up part of them."""

    def __init__(self, limits: SetLimits) -> None:
        self.limits = limits
        self.tools = self.optional = self.unions = 0

    def refusal(self, schema: dict[str, Any]) -> str | None:
        """Return why a schema would exceed a limit; if it does not, count it and return None."""
        limits = self.limits
        try:
            size = measure(schema, limits.large_enum[0] if limits.large_enum else 0)
        except RecursionError:
            return "the schema is nested too deeply"
        tools, optional = self.tools + 1, self.optional + size.optional
        unions = self.unions + size.unions
        largest = limits.large_enum[1] if limits.large_enum else None
        for found, limit, what in (
            (tools, limits.tools, "strict tools in a request"),
            (optional, limits.optional, "optional properties in all strict tools"),
            (unions, limits.unions, "properties with a union of types in all strict tools"),
            (size.members, limits.members, "properties in a schema"),
            (size.depth, limits.depth, "levels of objects in a schema"),
            (size.characters, limits.characters, "name and value characters in a schema"),
            (size.enum_values, limits.enum_values, "enum values in a schema"),
            (size.large_enum, largest, "characters in a large enum"),
        ):
            if limit is not None and found > limit:
                return f"{found} {what}, but the provider allows only {limit}"
        self.tools, self.optional, self.unions = tools, optional, unions
        return None


def measure(schema: dict[str, Any], large: int = 0) -> SchemaSize:
    """Count what providers limit; an enum with more than *large* values counts as large."""
    size = SchemaSize(depth=_depth(schema, schema, {}))
    size.characters = sum(map(len, schema.get("$defs", {})))
    for each in inner_schemas(schema):
        properties = each.get("properties")
        # A property may itself be called "properties", "enum" or "const".
        if each.get("type") == "object" and isinstance(properties, Mapping):
            size.members += len(properties)
            size.characters += sum(map(len, properties))
            size.optional += len(properties.keys() - set(each.get("required", ())))
            size.unions += sum(
                "anyOf" in value or isinstance(value.get("type"), list)
                for value in properties.values()
            )
        if isinstance(values := each.get("enum"), list):
            characters = sum(len(str(value)) for value in values)
            size.enum_values += len(values)
            size.characters += characters
            if len(values) > large and all(isinstance(value, str) for value in values):
                size.large_enum = max(size.large_enum, characters)
        elif "const" in each and not isinstance(each["const"], Mapping):
            size.characters += len(str(each["const"]))
    return size


def _depth(schema: Any, root: dict[str, Any], known: dict[str, int]) -> int:
    """Return the number of object levels; a recursive definition is counted once."""
    if not isinstance(schema, Mapping):
        return 0
    if isinstance(ref := schema.get("$ref"), str):
        if ref not in known:
            # Inside itself, a definition counts as zero.
            known[ref] = 0
            known[ref] = _depth(target(ref, root), root, known)
        return known[ref]
    inner = [*schema.get("anyOf", ()), schema.get("items"), *schema.get("properties", {}).values()]
    below = max((_depth(each, root, known) for each in inner), default=0)
    return below + (schema.get("type") == "object")
