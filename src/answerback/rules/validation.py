"""Checks a reply against the rules, and repairs it.

This is a hot path, at about 15 microseconds per reply. `findings_in`, which checks replies from an
app's own tools, is even faster: nearly all are plain, and few rules can find anything in those.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable
from copy import deepcopy
from typing import Any, get_args

import msgspec

from ..contract import ENVELOPE, STANDARD, Dialect
from ..core.content import Text
from ..core.limits import MAX_BLOCKS, MAX_REPAIRED_BYTES, MAX_VALUES
from ..core.reply import RESULT_MEMBERS, Reply
from ..core.secrets import may_hold_secrets, secrets_in
from ..core.shape import RESULT
from ..core.versions import LATEST_STATEFUL, VERSIONS, Version
from ..dialects import shape_of, write
from ..dialects.reply_text import HINT_LINE, content_with_text
from ..types.json_text import has_more_marks
from ..verdicts.forms import dialect_of
from ..verdicts.judge import FAILURE_MEMBERS, is_failure_json
from .catalogue import RULE_BY_CHECK, RULES, Checks, RulePlan, plan_for
from .checks.ab1_forms import not_an_object, not_json
from .checks.ab6_size import message_too_large
from .finding import Fault, Faults, Finding
from .reply_view import NO_CONTEXT, CheckContext, ReplyView, kind_name

DIALECTS: tuple[str, ...] = get_args(Dialect)


def validate(
    reply: Any,
    dialect: Dialect | None = None,
    schema: dict[str, Any] | None = None,
    version: str | Version | None = None,
) -> tuple[Finding, ...]:
    """Return the findings in a reply: about the whole reply, then each block, then secrets.

    The reply is a `Reply`, a decoded JSON value, or JSON as bytes or text. Without a dialect,
    the reply's members decide whether it is an envelope or an MCP result. *schema* is the tool's
    output schema (checked with jsonschema-rs, from the `lint` extra), *version* the MCP version.
    """
    if dialect is not None and dialect not in DIALECTS:
        there = ", ".join(DIALECTS)
        raise ValueError(f"no dialect is called {dialect!r}; choose from {there}")
    if schema is None and version is None:
        context = NO_CONTEXT
    else:
        known = VERSIONS.get(version) if isinstance(version, str) else version
        if version is not None and known is None:
            there = ", ".join(VERSIONS)
            raise ValueError(f"there is no MCP version {version!r}; the versions are {there}")
        context = CheckContext(known, schema)
    if isinstance(reply, Reply):
        dialect = dialect or "mcp"
        contract = reply.contract or (ENVELOPE if dialect == "envelope" else STANDARD)
        shape = reply.shape or shape_of(reply)
        written = write(reply, dialect, shape, contract, context.version or LATEST_STATEFUL)
        is_json = written.media_type.endswith("json")
        reply = msgspec.json.decode(written.body) if is_json else {"content": []}
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
    """Return the findings in a decoded reply; *context* holds other facts about its call."""
    if not isinstance(reply, dict):
        if dialect != "rest":
            message = f"the reply is {kind_name(reply)}, not an object"
            return (not_an_object.finding(Fault("", message)),)
        # A REST reply may be any JSON value, so check it as the only member of an object.
        inner = check({"result": reply}, "rest", context)
        return tuple(msgspec.structs.replace(each, pointer=each.pointer[7:]) for each in inner)
    if dialect is None:
        # Only MCP requests have a method.
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
            return tuple(
                each
                for index, tool in enumerate(reply["tools"])
                if isinstance(tool, dict)
                for run in plan.tool
                for each in _findings(run, run(view, tool, index))
            )
        if "error" in reply and context.method is not None:
            return tuple(each for run in plan.rpc for each in _findings(run, run(view)))
    for run in plan.reply:
        if faults := run(view):
            findings += _findings(run, faults)
    _check_parts(view, plan, findings)
    return tuple(findings)


def decode_json(source: bytes | str) -> Any:
    """Decode JSON, accepting NaN and Infinity, which rule AB304 reports.

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
    return message_too_large.finding(Fault(pointer, f"{count} in one message; it was not checked"))


def _findings(run: Callable[..., Faults], faults: Faults) -> Iterable[Finding]:
    return map(RULE_BY_CHECK[run].finding, faults)


def _check_parts(view: ReplyView, plan: RulePlan, findings: list[Finding]) -> None:
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
    if may_hold_secrets(view.text_to_scan):
        for pointer, text in view.strings():
            if secrets := list(secrets_in(text)):
                for run in plan.leak:
                    findings += _findings(run, run(view, secrets, pointer))


_MAX_ROUNDS = 4  # A fix may cause a finding that another fix can repair.


def repair(
    reply: dict[str, Any],
    dialect: Dialect | None = None,
    context: CheckContext = NO_CONTEXT,
    rules: Collection[str] = frozenset(RULES),
) -> tuple[Finding, ...]:
    """Repair a decoded reply in place; return the remaining findings."""
    findings = check(reply, dialect, context)
    for _ in range(_MAX_ROUNDS):
        fixable = [each for each in findings if each.rule in rules and RULES[each.rule].fix]
        # Last pointer first, because removing an item does not shift the items before it.
        for each in sorted(fixable, key=lambda each: each.pointer, reverse=True):
            _apply_fix(reply, each)
        left = check(reply, dialect, context)
        if left == findings:
            break
        findings = left
    return findings


def can_repair(reply: dict[str, Any], finding: Finding) -> bool:
    """Return whether the rule's fix changes the reply; for example, no fix can repair data that is
    not base64 in any form."""
    if RULES[finding.rule].fix is None:
        return False
    changed = deepcopy(reply)
    _apply_fix(changed, finding)
    return changed != reply


def _apply_fix(reply: dict[str, Any], finding: Finding) -> None:
    fix = RULES[finding.rule].fix
    if fix is not None:
        try:
            fix(reply, finding.pointer)
        except (KeyError, IndexError, TypeError, ValueError):
            # Another fix has changed this part; the next round checks the reply again.
            return


# Prefixes of text that the rules may read as JSON; the last is a Markdown code fence.
_JSON_STARTS = ("{", "[", '"', "```")
# The MCP form repeats the text in the data; even twice this length is below AB602's limit.
_MAX_LENGTH = 32 * 1024
# An object without any of these members is neither an error object nor a tool result.
_SUSPECT_MEMBERS = FAILURE_MEMBERS | RESULT_MEMBERS | {"results"}
_UNSET = msgspec.UNSET
_decode = msgspec.json.Decoder().decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode = msgspec.json.Encoder(enc_hook=repr).encode


def _plain_checks(failed: bool, is_json: bool) -> tuple[Checks, Checks]:
    """Return the checks that a plain reply can fail: on the reply, and on its text."""
    plan = plan_for("mcp", failed, has_version=False, has_schema=False)
    which = ("any", "json") if is_json else ("any",)
    on_reply, on_text = (
        tuple(check for check in checks if RULE_BY_CHECK[check].scope.plain_replies in which)
        for checks in (plan.reply, plan.text)
    )
    return on_reply, on_text


_PLAIN_CHECKS = {
    (failed, is_json): _plain_checks(failed, is_json)
    for failed in (False, True)
    for is_json in (False, True)
}


def findings_in(reply: Reply[Any]) -> tuple[Finding, ...]:
    """Return the findings in a reply; they are the same in every dialect.

    Pointers lead into `{"content": …, "data": …, "error": …, "meta": …}`.
    """
    if _passes_quick_check(reply):
        return ()
    if reply.shape is not None:
        # The message and the lines repeat the blocks.
        reply = msgspec.structs.replace(reply, shape=reply.shape.without_additions())
    # In the MCP form, the text repeats the data; each finding is returned once.
    findings = [
        msgspec.structs.replace(each, pointer=_reply_pointer(each.pointer, reply))
        for each in validate(reply, "mcp")
    ]
    unique: dict[tuple[str, str], Finding] = {}
    for each in findings:
        below = f"{each.pointer}/"
        has_exact_one = each.pointer in ("/data", "/error/message") and any(
            other.rule == each.rule and other.pointer.startswith(below) for other in findings
        )
        if not has_exact_one:
            unique.setdefault((each.rule, each.pointer), each)
    return tuple(unique.values())


def _passes_quick_check(reply: Reply[Any]) -> bool:
    """Return True only if the reply is plain and no rule finds anything."""
    if reply.meta or reply.cuts:
        return False
    if reply.error is not None:
        if reply.content:
            return False
        text = _encode(reply.error).decode()
        if len(text) > _MAX_LENGTH or may_hold_secrets(text):
            return False
        message, hint = reply.error.message, reply.error.hint
        # The text of an MCP result also contains the hint.
        return _passes(f"{message}{HINT_LINE}{hint}" if hint else message, text, failed=True)
    if reply.content:
        block = reply.content[0]
        if reply.data is not _UNSET or len(reply.content) > 1 or type(block) is not Text:
            return False
        if block.annotations or block.meta:
            return False
        text = block.text
        # JSON may encode one character as six characters.
        is_short = len(text) <= _MAX_LENGTH // 2
        return is_short and not may_hold_secrets(text) and _passes(text, text)
    encoded = reply.encoded
    if encoded is None or len(encoded) > _MAX_LENGTH:
        return False
    text = encoded.decode()
    if may_hold_secrets(text):
        return False
    if text[0] == "{":
        is_plain = _SUSPECT_MEMBERS.isdisjoint(_decode_members(encoded))
        return is_plain or _passes(text, text, data=_decode(encoded))
    if text[0] == '"':
        # Dates and some other non-string values are also encoded as strings.
        string = reply.data if type(reply.data) is str else _decode(encoded)
        return _passes(string, text, data={"result": string})
    # The text of a list is {"result": …}, which is a failure if every item is one.
    return not text.startswith("[{") or not is_failure_json(_decode(encoded))


def _passes(text: str, json_text: str, *, failed: bool = False, data: Any = _UNSET) -> bool:
    """Return whether no rule finds anything in a plain reply with *text* and *data*, encoded as
    *json_text*."""
    reply: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": failed}
    if data is not _UNSET:
        reply["structuredContent"] = data
    view = ReplyView(reply, "mcp", NO_CONTEXT, json_text)
    on_reply, on_text = _PLAIN_CHECKS[failed, text.lstrip().startswith(_JSON_STARTS)]
    for check in on_reply:
        if check(view):
            return False
    for check in on_text:  # noqa: SIM110 -- any() takes twice as long
        if check(view, text, 0):
            return False
    return True


def _reply_pointer(pointer: str, reply: Reply[Any]) -> str:
    """Convert a pointer into a reply's MCP form to a pointer into the reply."""
    name, *path = pointer[1:].split("/")
    match name, path:
        case "structuredContent", ["result", *rest] if shape_of(reply) is RESULT:
            return "/".join(["/data", *rest])
        case "structuredContent", _:
            return "/".join(["/data", *path])
        case "isError", _:
            return "/error"
        case "_meta", ["answerback~1error", *rest]:
            return "/".join(["/error", *rest])
        case "_meta", _:
            return "/".join(["/meta", *path])
        case "content", [index, *rest]:
            # If the content lacks the text, the dialect adds a block that is not in the reply.
            written = content_with_text(reply, shape_of(reply), STANDARD)
            added = len(written) > len(reply.content)
            is_first = added and written[1:] == reply.content
            if added and int(index) == (0 if is_first else len(reply.content)):
                return "/data" if reply.error is None else "/error/message"
            return "/".join([f"/content/{int(index) - is_first}", *rest])
        case "content", _ if not reply.content:
            return "/data" if reply.error is None else "/error/message"
    return pointer
