"""Checks a reply against the rules. A hot path: about 15 microseconds a reply."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, get_args

import msgspec

from ..contract import ENVELOPE, STANDARD, Dialect
from ..core.limits import MAX_BLOCKS, MAX_REPAIRED_BYTES, MAX_VALUES
from ..core.reply import Reply
from ..core.secrets import may_hold_secrets, secrets_in
from ..core.versions import LATEST_STATEFUL, VERSIONS, Version
from ..dialects import shape_of, write
from ..dialects.verdicts import dialect_of
from ..types.json_text import has_more_marks
from .catalogue import RULE_BY_CHECK, RulePlan, plan_for
from .checks.ab1_result import not_an_object, not_json
from .checks.ab6_size import message_too_large
from .finding import Fault, Faults, Finding
from .json_values import kind_name
from .reply_view import NO_CONTEXT, CheckContext, ReplyView

DIALECTS: tuple[str, ...] = get_args(Dialect)


def validate(
    reply: Any,
    dialect: Dialect | None = None,
    schema: dict[str, Any] | None = None,
    version: str | Version | None = None,
) -> tuple[Finding, ...]:
    """Return the findings in a reply: about the whole reply, then each block, then secrets.

    The reply is a `Reply`, a decoded JSON value, or JSON as bytes or text. Without a dialect,
    `dialects.reply_or_data` tells an envelope from an MCP result. *schema* is the tool's output
    schema (checked with jsonschema-rs, of the extra `lint`), *version* that of MCP.
    """
    if dialect is not None and dialect not in DIALECTS:
        there = ", ".join(DIALECTS)
        raise ValueError(f"no dialect is called {dialect!r}; there are {there}")
    if schema is None and version is None:
        context = NO_CONTEXT
    else:
        known = VERSIONS.get(version) if isinstance(version, str) else version
        if version is not None and known is None:
            there = ", ".join(VERSIONS)
            raise ValueError(f"no version of MCP is called {version!r}; there are {there}")
        context = CheckContext(known, schema)
    if isinstance(reply, Reply):
        dialect = dialect or "mcp"
        reply = _as_json(reply, dialect, context)
        context = msgspec.structs.replace(context, unsent=True)
    elif isinstance(reply, bytes | str):
        raw = reply if isinstance(reply, bytes) else reply.encode("utf-8", "replace")
        if has_more_marks(raw, MAX_VALUES):
            return (_unchecked("", f"more than {MAX_VALUES} values"),)
        try:
            reply = decode_json(reply)
        except ValueError as exc:
            return (not_json.finding(Fault("", f"not JSON: {exc}")),)
    return check(reply, dialect, context)


def check(
    reply: Any, dialect: Dialect | None = None, context: CheckContext = NO_CONTEXT
) -> tuple[Finding, ...]:
    """Return the findings in a decoded reply, given what else is known about its call."""
    if not isinstance(reply, dict):
        return _check_non_object(reply, dialect, context)
    if dialect is None:
        # Only MCP has requests with a method.
        dialect = dialect_of(reply) if context.method is None else "mcp"
    content = reply.get("content")
    if isinstance(content, list) and len(content) > MAX_BLOCKS:
        return (_unchecked("/content", f"{len(content)} items"),)
    view = ReplyView(reply, dialect, context)
    findings: list[Finding] = []
    has_schema = context.schema is not None or context.listed
    plan = plan_for(dialect, view.failed, context.version is not None, has_schema)
    if dialect == "mcp" and not view.blocks:
        if isinstance(reply.get("tools"), list) and "content" not in reply:
            return _check_tools(view, plan)
        if "error" in reply and context.method is not None:
            return tuple(each for run in plan.rpc for each in _findings(run, run(view)))
    for run in plan.reply:
        if faults := run(view):
            findings += _findings(run, faults)
    _check_blocks(view, plan, findings)
    if may_hold_secrets(view.text_to_scan):
        _check_secrets(view, plan, findings)
    return tuple(findings)


def decode_json(source: bytes | str) -> Any:
    """Decode JSON, also with NaN or Infinity in it, which rule AB304 reports.

    Raises ValueError if *source* is not JSON.
    """
    try:
        return msgspec.json.decode(source)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except ValueError:
        text = source if isinstance(source, str) else source.decode("utf-8", "replace")
        is_small = len(text) <= MAX_REPAIRED_BYTES
        if not is_small or ("NaN" not in text and "Infinity" not in text):
            raise
        return json.loads(text)


def _unchecked(pointer: str, count: str) -> Finding:
    return message_too_large.finding(Fault(pointer, f"{count} in one message are not checked"))


def _findings(run: Callable[..., Faults], faults: Faults) -> Iterable[Finding]:
    return map(RULE_BY_CHECK[run].finding, faults)


def _check_blocks(view: ReplyView, plan: RulePlan, findings: list[Finding]) -> None:
    for index, block in view.blocks:
        block_type = block.get("type")
        if isinstance(block_type, str) and block_type:
            for run in plan.blocks.get(block_type, plan.unknown_block):
                if faults := run(view, block, index):
                    findings += _findings(run, faults)
    for index, text in view.texts:
        for run in plan.text:
            if faults := run(view, text, index):
                findings += _findings(run, faults)


def _check_secrets(view: ReplyView, plan: RulePlan, findings: list[Finding]) -> None:
    for pointer, text in view.strings():
        if secrets := list(secrets_in(text)):
            for run in plan.leak:
                findings += _findings(run, run(view, secrets, pointer))


def _check_tools(view: ReplyView, plan: RulePlan) -> tuple[Finding, ...]:
    return tuple(
        each
        for index, tool in enumerate(view.json["tools"])
        if isinstance(tool, dict)
        for run in plan.tool
        for each in _findings(run, run(view, tool, index))
    )


def _check_non_object(
    reply: Any, dialect: Dialect | None, context: CheckContext
) -> tuple[Finding, ...]:
    if dialect == "rest":
        # A REST reply may be any JSON value: check it as the only member of an object.
        inner = check({"result": reply}, "rest", context)
        return tuple(msgspec.structs.replace(each, pointer=each.pointer[7:]) for each in inner)
    return (not_an_object.finding(Fault("", f"the reply is {kind_name(reply)}, not an object")),)


def _as_json(reply: Reply[Any], dialect: Dialect, context: CheckContext) -> Any:
    """Return a `Reply` written in the dialect and decoded again."""
    contract = reply.contract or (ENVELOPE if dialect == "envelope" else STANDARD)
    version = context.version or LATEST_STATEFUL
    written = write(reply, dialect, reply.shape or shape_of(reply), contract, version)
    is_json = written.media_type.endswith("json")
    return msgspec.json.decode(written.body) if is_json else {"content": []}
