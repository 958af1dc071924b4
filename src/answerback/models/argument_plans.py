"""Plans that turn a model's arguments back into the tool's arguments.

Converting a schema creates a plan wherever the provider's form of a value differs from the tool's.
The plan for a value that stays unchanged is None.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, repeat
from typing import Any, TypeAlias

import msgspec

from ..errors import INVALID_ARGUMENTS, InvalidInput
from ..types.schema_references import follow
from .schema_facts import type_of_value

KEY, VALUE = "key", "value"
"""The members of a pair; a map becomes a list of pairs if a provider does not accept maps."""


class MemberPlan(msgspec.Struct, frozen=True):
    """A property: its name in the tool's schema, and whether null means that it is omitted."""

    name: str
    plan: Plan = None
    null_is_absent: bool = False


class ObjectPlan(msgspec.Struct, frozen=True):
    members: dict[str, MemberPlan]


class MapPlan(msgspec.Struct, frozen=True):
    """A map; *pairs* says whether the model writes it as a list of pairs."""

    plan: Plan = None
    pairs: bool = True


class ArrayPlan(msgspec.Struct, frozen=True):
    items: Plan = None
    prefix: tuple[Plan, ...] = ()


class TuplePlan(msgspec.Struct, frozen=True):
    """A tuple that the model writes as an object with the members item0, item1…"""

    plans: tuple[Plan, ...]
    required: int


class UnionPlan(msgspec.Struct, frozen=True):
    """Alternatives: for each, its plan and the converted schema that decides whether it applies."""

    branches: tuple[tuple[dict[str, Any], Plan], ...]


class RefPlan(msgspec.Struct, frozen=True):
    name: str


Known: TypeAlias = dict[tuple[int, int], bool]
"""Whether a value fits a schema, by the ids of both."""
Plan: TypeAlias = ObjectPlan | MapPlan | ArrayPlan | TuplePlan | UnionPlan | RefPlan | None


class Decoder(msgspec.Struct, frozen=True):
    """A decoder for one tool's arguments; *plans* and the schema *root* have its definitions."""

    plan: Plan = None
    plans: dict[str, Plan] = {}
    root: dict[str, Any] = {}

    def decode(self, value: Any) -> Any:
        """Return the arguments that the tool expects; *value* is not changed.

        A value that does not fit the schema is passed on as is, and the tool refuses it.
        """
        return self._decode(value, self.plan, {})

    def _decode(self, value: Any, plan: Plan, known: Known) -> Any:
        match plan:
            case RefPlan():
                return self._decode(value, self._target(plan), known)
            case ObjectPlan(members) if isinstance(value, dict):
                decoded = {}
                for key, each in value.items():
                    member = members.get(key) or MemberPlan(key)
                    if each is not None or not member.null_is_absent:
                        decoded[member.name] = self._decode(each, member.plan, known)
                return decoded
            case MapPlan(inner) if isinstance(value, dict):
                return {key: self._decode(each, inner, known) for key, each in value.items()}
            case MapPlan(pairs=True) if isinstance(value, list):
                return self._pairs(value, plan, known)
            case ArrayPlan(items, prefix) if isinstance(value, list):
                planned = zip(value, chain(prefix, repeat(items)), strict=False)
                return [self._decode(each, inner, known) for each, inner in planned]
            case TuplePlan() if isinstance(value, dict):
                return self._tuple(value, plan, known)
            case UnionPlan(branches):
                for schema, inner in branches:
                    if fits(value, schema, self.root, known):
                        return self._decode(value, inner, known)
        return value

    def _target(self, plan: Plan) -> Plan:
        for _ in range(len(self.plans) + 1):
            if not isinstance(plan, RefPlan):
                return plan
            plan = self.plans[plan.name]
        # The definition is only a reference to itself.
        return None

    def _pairs(self, value: list[Any], plan: MapPlan, known: Known) -> Any:
        decoded: dict[str, Any] = {}
        for pair in value:
            if not isinstance(pair, dict) or pair.keys() != {KEY, VALUE}:
                return value
            if pair[KEY] in decoded:
                message = f"the key {pair[KEY]!r} appears twice in the list"
                raise InvalidInput(message, code=INVALID_ARGUMENTS)
            decoded[pair[KEY]] = self._decode(pair[VALUE], plan.plan, known)
        return decoded

    def _tuple(self, value: dict[str, Any], plan: TuplePlan, known: Known) -> Any:
        names = [item_name(at) for at in range(len(plan.plans))]
        given = [at for at, name in enumerate(names) if value.get(name) is not None]
        count = max(plan.required, given[-1] + 1 if given else 0)
        if any(name not in value for name in names[:count]):
            return value
        return [self._decode(value[names[at]], plan.plans[at], known) for at in range(count)]


def item_name(at: int) -> str:
    """Return the name of the object member that represents a tuple item."""
    return f"item{at}"


def fits(value: Any, schema: Mapping[str, Any], root: dict[str, Any], known: Known) -> bool:
    """Return whether *value* has the types and members of a converted schema.

    *known* caches the results for one call: recursive alternatives repeat the same checks.
    """
    schema = follow(schema, root) or {}
    key = (id(value), id(schema))
    if key not in known:
        known[key] = _fits(value, schema, root, known)
    return known[key]


def _fits(value: Any, schema: Mapping[str, Any], root: dict[str, Any], known: Known) -> bool:
    if "anyOf" in schema and not any(fits(value, each, root, known) for each in schema["anyOf"]):
        return False
    if not has_type(value, schema.get("type")):
        return False
    if "const" in schema and not _equal(schema["const"], value):
        return False
    if "enum" in schema and not any(_equal(each, value) for each in schema["enum"]):
        return False
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        if any(name not in value for name in schema.get("required", ())):
            return False
        if schema.get("additionalProperties") is False and not value.keys() <= properties.keys():
            return False
        return all(
            fits(value[name], properties[name], root, known) for name in value.keys() & properties
        )
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return all(fits(each, schema["items"], root, known) for each in value)
    return True


def has_type(value: Any, types: Any) -> bool:
    if types is None:
        return True
    if isinstance(types, list):
        return any(has_type(value, each) for each in types)
    if types == "integer" and isinstance(value, float):
        return value.is_integer()
    found = type_of_value(value)
    return bool(types == found or (types == "number" and found == "integer"))


def _equal(one: Any, other: Any) -> bool:
    return bool(one == other) and isinstance(one, bool) is isinstance(other, bool)
