"""Puts a reply to the rules. Hot: a usual reply is done in a few microseconds."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, get_args

import msgspec

from ..contract import ENVELOPE, STANDARD
from ..contract import Dialect as _Dialect
from ..dialects.detect import dialect_of
from ..reply import Reply
from ..shape import BARE, RESULT, Shape
from ..versions import LATEST_LEGACY, VERSIONS, Version
from .catalogue import RULE_OF, Plan, plan_for
from .checks.ab1_result import not_an_object, not_json
from .detectors.secrets import may_hold_secrets, secrets_in
from .finding import Fault, Faults, Finding
from .json_values import kind
from .reply_view import NOTHING_KNOWN, Circumstances, Subject

if TYPE_CHECKING:
    from ..contract import Dialect

DIALECTS: tuple[str, ...] = get_args(_Dialect)


def validate(
    reply: Any,
    dialect: Dialect | None = None,
    schema: dict[str, Any] | None = None,
    version: str | Version | None = None,
) -> tuple[Finding, ...]:
    """What the rules find in a reply, in the order of where it stands.

    The reply is a `Reply`, a decoded JSON value, or JSON as bytes or text. Without a dialect,
    `dialects.detect` tells an envelope from an MCP result. *schema* is the tool's output schema
    (checked with jsonschema-rs, of the extra `lint`), *version* that of MCP.
    """
    if dialect is not None and dialect not in DIALECTS:
        there = ", ".join(DIALECTS)
        raise ValueError(f"no dialect is called {dialect!r}; there are {there}")
    if schema is None and version is None:
        given = NOTHING_KNOWN
    else:
        known = VERSIONS.get(version) if isinstance(version, str) else version
        if version is not None and known is None:
            there = ", ".join(VERSIONS)
            raise ValueError(f"no version of MCP is called {version!r}; there are {there}")
        given = Circumstances(known, schema)
    if isinstance(reply, Reply):
        dialect = dialect or "mcp"
        reply = _written(reply, dialect, given)
    elif isinstance(reply, bytes | str):
        try:
            reply = decoded(reply)
        except ValueError as exc:
            return (not_json.finding(Fault("", f"not JSON: {exc}")),)
    return check(reply, dialect, given)


def check(
    found: Any, dialect: Dialect | None = None, given: Circumstances = NOTHING_KNOWN
) -> tuple[Finding, ...]:
    """What the rules find in decoded JSON, with all that is known beside it."""
    if not isinstance(found, dict):
        return _not_an_object(found, dialect, given)
    if dialect is None:
        # Only MCP has requests with a method.
        dialect = dialect_of(found) if given.method is None else "mcp"
    it = Subject(found, dialect, given)
    findings: list[Finding] = []
    with_schema = given.schema is not None or given.listed
    plan = plan_for(dialect, it.failed, given.version is not None, with_schema)
    if dialect == "mcp" and not it.blocks:
        if isinstance(found.get("tools"), list) and "content" not in found:
            return _of_tools(it, plan)
        if "error" in found and given.method is not None:
            return tuple(each for run in plan.rpc for each in _findings(run, run(it)))
    for run in plan.reply:
        if faults := run(it):
            findings += _findings(run, faults)
    if it.blocks:
        _check_blocks(it, plan, findings)
    if may_hold_secrets(it.worth_reading):
        _check_secrets(it, plan, findings)
    return tuple(findings)


def decoded(source: bytes | str) -> Any:
    """JSON as it was sent, also with NaN in it, of which a rule tells; raises ValueError."""
    try:
        return msgspec.json.decode(source)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        text = source if isinstance(source, str) else source.decode("utf-8", "replace")
        if "NaN" not in text and "Infinity" not in text:
            raise
        return json.loads(text)


def _findings(run: Callable[..., Faults], faults: Faults) -> Iterable[Finding]:
    return map(RULE_OF[run].finding, faults)


def _check_blocks(it: Subject, plan: Plan, findings: list[Finding]) -> None:
    for index, block in it.blocks:
        noun = block.get("type")
        if isinstance(noun, str) and noun:
            for run in plan.blocks.get(noun, plan.other):
                if faults := run(it, block, index):
                    findings += _findings(run, faults)
    for index, text in it.texts:
        for run in plan.text:
            if faults := run(it, text, index):
                findings += _findings(run, faults)


def _check_secrets(it: Subject, plan: Plan, findings: list[Finding]) -> None:
    for pointer, text in it.strings():
        if secrets := list(secrets_in(text)):
            for run in plan.leak:
                findings += _findings(run, run(it, secrets, pointer))


def _of_tools(it: Subject, plan: Plan) -> tuple[Finding, ...]:
    return tuple(
        each
        for index, tool in enumerate(it.found["tools"])
        if isinstance(tool, dict)
        for run in plan.tool
        for each in _findings(run, run(it, tool, index))
    )


def _not_an_object(
    found: Any, dialect: Dialect | None, given: Circumstances
) -> tuple[Finding, ...]:
    if dialect == "rest":
        # A REST reply may be any JSON; what is not an object is checked as one's only member.
        inner = check({"result": found}, "rest", given)
        return tuple(msgspec.structs.replace(each, pointer=each.pointer[7:]) for each in inner)
    return (not_an_object.finding(Fault("", f"the reply is {kind(found)}, not an object")),)


def shape_of(reply: Reply[Any]) -> Shape:
    """How its data is wrapped, as far as a reply alone can tell: an object is sent as it is."""
    from ..dialects.common import encoded_data

    if reply.data is msgspec.UNSET or encoded_data(reply).startswith(b"{"):
        return BARE
    return RESULT


def _written(reply: Reply[Any], dialect: Dialect, given: Circumstances) -> Any:
    from ..dialects import write

    contract = ENVELOPE if dialect == "envelope" else STANDARD
    version = given.version or LATEST_LEGACY
    written = write(reply, dialect, shape_of(reply), contract, version)
    is_json = written.media_type.endswith("json")
    return msgspec.json.decode(written.body) if is_json else {"content": []}
