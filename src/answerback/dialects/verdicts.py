"""Decides whether a value or text is a failure, a finished reply or data."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import msgspec

from ..contract import Dialect
from ..core.content import is_block
from ..core.json_value import is_integer
from ..core.limits import MAX_INNER_BYTES, MAX_VALUES
from ..core.reply import ENVELOPE_MEMBERS, RESULT_MEMBERS
from ..errors import UNKNOWN_ERROR
from ..types.json_text import has_more_marks

_MCP_MEMBERS = frozenset({"content", "structuredContent", "resultType", "tools"})

# Chat completion messages have content too, but nothing else that could be data.
_RESULT_OR_MESSAGE = RESULT_MEMBERS | {"role", "name", "tool_call_id"}


_FAILURE_MARKS = frozenset(
    {"success", "ok", "isError", "error", "errors", "errorMessages", "message", "title", "detail"}
)


def may_be_error_object(found: Any) -> bool:
    """Return whether the value may report a failure; False for nearly all data.

    This is a quick test. If it returns True, `is_failure_json` decides.
    """
    if not isinstance(found, dict):
        return isinstance(found, list)
    is_wrapped = len(found) == 1 and isinstance(found.get("result"), dict)
    return is_wrapped or not _FAILURE_MARKS.isdisjoint(found)


def finished_dialect(found: dict[str, Any]) -> Dialect | None:
    """Return the dialect of an object that can only be a finished reply; None if it may be data.

    Failures need less evidence than successes, because a failure must not be sent as a success.
    """
    has_content = _has_blocks(found)
    if found.get("isError") is True:
        return "mcp" if has_content else "envelope"
    match found:
        case {"success": False}:
            return "envelope"
        case {"success": True} if has_content:
            return "mcp" if "isError" in found else "envelope"
        case {"success": True} | {"content": _, "data": _} if found.keys() <= ENVELOPE_MEMBERS:
            return "envelope" if has_content or "success" in found else None
        case {"error": str(error)} if len(found) == 1 and error.strip():
            return "envelope"
        case {"error": dict(error)} if len(found) == 1 and error:
            return "envelope"
    return "mcp" if has_content and found.keys() <= RESULT_MEMBERS else None


def _has_blocks(found: dict[str, Any]) -> bool:
    """Return whether it has a list of blocks; an empty one counts only with other reply members."""
    match found.get("content"):
        case [_, *_] as blocks:
            return all(map(_is_block, blocks))
        case []:
            return isinstance(found.get("isError", found.get("success")), bool) or isinstance(
                found.get("structuredContent"), dict
            )
    return False


def _is_block(block: Any) -> bool:
    if isinstance(block, dict):
        return isinstance(block.get("type"), str)
    return is_block(block)


def dialect_of(found: Any) -> Dialect:
    """Return the dialect of a reply received without one: "mcp" or "envelope".

    `isError` makes it an MCP result, even along with `success`: the `envelope` contract sends both
    over MCP. Otherwise `success` makes it an envelope, and any other member of a result makes it
    an MCP result. A value with none of these counts as an envelope that lacks every member.
    """
    if not isinstance(found, dict):
        return "envelope"
    if "isError" in found:
        return "mcp"
    if "success" in found or _MCP_MEMBERS.isdisjoint(found):
        return "envelope"
    return "mcp"


def received_dialect(found: Any) -> Dialect:
    """Return the dialect of a reply that `read` received from any server; "rest" for plain data.

    An object that is not a finished reply is an MCP result if it has a member that only results
    have, or content and only members that results have.
    """
    if not isinstance(found, dict):
        return "rest"
    if (finished := finished_dialect(found)) is not None:
        return finished
    if "isError" in found or "structuredContent" in found:
        return "mcp"
    if isinstance(found.get("success"), bool) and found.keys() <= ENVELOPE_MEMBERS:
        return "envelope"
    if "content" in found and (found.keys() <= _RESULT_OR_MESSAGE or _has_blocks(found)):
        return "mcp"
    return "problem" if _is_problem(found) else "rest"


def _is_problem(found: dict[str, Any]) -> bool:
    match found:
        case {"status": int(status), "title": str()} | {"status": int(status), "type": str()}:
            return 400 <= status <= 599
    return False


def is_json_rpc(found: Any) -> bool:
    """Return whether a decoded value is a JSON-RPC message, or a message's error."""
    match found:
        case {"jsonrpc": _} if not {"result", "error", "method"}.isdisjoint(found):
            return True
        case {"jsonrpc": "2.0"} | {"id": _, "result": _, "error": _}:
            # A response without a result, or a JSON-RPC 1.0 response.
            return set(found) <= {"jsonrpc", "id", "result", "error"}
        case {"error": {"code": int(), "message": str()}}:
            return set(found) <= {"error", "id"}
        case {"result": dict(result)} if set(found) <= {"result", "id"}:
            return finished_dialect(result) == "mcp"
        case {"code": int(code), "message": str()}:
            return code <= -32_000 and set(found) <= {"code", "message", "data"}
    return False


def is_block_list(found: Any) -> bool:
    """Return whether a decoded value is a result's content, without the result around it."""
    return isinstance(found, list) and bool(found) and all(map(_is_known_block, found))


def _is_known_block(block: Any) -> bool:
    match block:
        case {"type": "text", "text": str()}:
            return set(block) <= {"type", "text", "annotations", "_meta"}
        case {"type": "image" | "audio", "data": str(), "mimeType": str()}:
            return True
        case {"type": "resource_link", "uri": str()} | {"type": "resource", "resource": dict()}:
            return True
    return False


def code_of(found: Any) -> str:
    """Return a reply's error code in either dialect; empty if the reply is a success."""
    match found:
        case {"error": {"code": str(code)}}:
            return code
        case {"_meta": {"answerback/error": {"code": str(code)}}}:
            return code
        case {"success": False} | {"isError": True}:
            return UNKNOWN_ERROR
        case {"error": error} if error:
            return UNKNOWN_ERROR
    return ""


# The reason phrases of HTTP errors.
STATUSES = (
    "Bad Request|Unauthorized|Payment Required|Forbidden|Not Found|Method Not Allowed|Conflict|"
    "Request Time-?out|Gone|(?:Payload|Content) Too Large|Unprocessable (?:Entity|Content)|"
    "Too Many Requests|Client Error|Server Error|Internal Server Error|Not Implemented|"
    "Bad Gateway|Service Unavailable|Gateway Time-?out"
)
# The members of error objects; an object with any other member is a record.
FAILURE_MEMBERS = frozenset(
    {
        *("success", "ok", "isError", "error", "errors", "error_type", "errorType", "type"),
        *("message", "msg", "errorMessage", "error_message", "error_description", "reason"),
        *("code", "errorCode", "error_code", "status", "statusCode", "status_code"),
        *("detail", "details", "hint", "retryable", "stack", "trace", "path", "timestamp"),
        *("request_id", "requestId", "data", "result"),
        # The first three are from problem details, the others from GitHub, Jira and AWS errors.
        *("title", "instance", "traceId", "documentation_url", "errorMessages", "__type"),
    }
)
# Slack and Telegram send these members along with `ok: false`.
_MEMBERS_BESIDE_NOT_OK = {
    "needed",
    "provided",
    "response_metadata",
    "warning",
    "description",
    "parameters",
}
# An object with only these members is an error if its message reads like one.
_MEMBERS_BESIDE_MESSAGE = {
    *("message", "code", "errorCode", "error_code", "errorType", "error_type", "type", "__type"),
    *("detail", "details", "hint", "retryable", "stack", "trace", "request_id", "requestId"),
    "documentation_url",
}
# The members of an item in `errors`, as in GraphQL and JSON:API. `line` is not included: an item
# with a line is a linter's finding.
_ITEM_MEMBERS = FAILURE_MEMBERS | {
    "locations",
    "extensions",
    "field",
    "source",
    "id",
    "meta",
    "param",
}
_PROBLEM_MEMBERS = ("detail", "instance", "traceId")
_EXCEPTION_NAME = re.compile(r"(?:.*[\W_])?\w*(?:error|exception)", re.IGNORECASE)
_CODE_FENCE = re.compile(r"```(?:json)?\s*\n(.*?)\n?```", re.DOTALL)


def strip_code_fence(text: str) -> str:
    """Return the contents of a Markdown code fence if it is the whole text, else the text."""
    text = text.strip()
    found = _CODE_FENCE.fullmatch(text) if text.startswith("```") else None
    return found[1] if found else text


def is_failure_json(value: Any) -> bool:
    """Return whether a value says that the call failed; data that contains an error does not."""
    if not may_be_error_object(value):
        return False
    if isinstance(value, dict):
        return _is_failure_object(value)
    return isinstance(value, list) and bool(value) and all(map(_is_issue, value))


def failure_in_text(text: str) -> Any:
    """Return the error object that the text encodes, even in a code fence; None for other text."""
    value = json_in_text(strip_code_fence(text) if text.startswith("```") else text)
    return value if is_failure_json(value) else None


def json_in_text(text: str) -> Any:
    """Return the object or array that *text* encodes as JSON, or None."""
    start = text[:1]
    if start.isspace():
        text = text.lstrip()
        start = text[:1]
    if start not in ("{", "[") or len(text) > MAX_INNER_BYTES:
        return None
    try:
        encoded = text.encode()
        return None if has_more_marks(encoded, MAX_VALUES) else msgspec.json.decode(encoded)
    except (ValueError, RecursionError):
        return None


def _is_failure_object(value: dict[str, Any]) -> bool:
    match value:
        case {"result": dict() as inner} if len(value) == 1:
            return is_failure_json(inner)
        case {"object": "error", "message": str()}:
            return True
    return _has_failure_members(value)


def _has_failure_members(value: dict[str, Any]) -> bool:
    is_not_ok = _is_not_ok(value)
    if is_not_ok and _is_error(value.get("error")):
        return True
    others = value.keys() - FAILURE_MEMBERS
    if others and not (is_not_ok and others <= _MEMBERS_BESIDE_NOT_OK):
        # `{"error": "no such table", "rows": []}` has nothing but the error.
        is_empty = all(value[name] in (None, [], {}) for name in others)
        return is_empty and _is_error(value.get("error")) and value.get("success") is not True
    is_ok = value.get("success") is True or value.get("status") in ("ok", "success", 200)
    if is_ok or value.get("data") or value.get("result"):
        return False
    if is_not_ok or value.get("isError") is True:
        return True
    error = value.get("error") or value.get("errors") or value.get("errorMessages")
    if value.get("status") in ("error", "fail") and (error or value.get("message")):
        return True
    return _has_error_status(value) or _has_error_message(value) or _is_error(error)


def _is_not_ok(value: dict[str, Any]) -> bool:
    if value.get("ok") is False or value.get("success") is False:
        return True
    # `success: 0` and `success: null` also mean failure, unless a status could say "pending".
    return "status" not in value and value.get("success", True) in (0, None)


def _has_error_status(value: dict[str, Any]) -> bool:
    """Return whether there is a 4xx or 5xx HTTP status, with a message or title.

    `code` counts only as a number or with an error message: coupons and rooms have codes too.
    """
    message, title = value.get("message"), value.get("title")
    if isinstance(message, str):
        status = [value.get(name) for name in ("status", "statusCode", "status_code")]
        status += [value.get("code")] * (is_integer(value.get("code")) or _is_error_phrase(message))
    elif isinstance(title, str):
        is_problem = any(name in value for name in _PROBLEM_MEMBERS) or _is_error_phrase(title)
        status = [value.get("status")] * is_problem
    else:
        status = []
    return any(re.fullmatch("[45][0-9][0-9]", str(each)) for each in status)


def _is_error_phrase(text: str) -> bool:
    return bool(re.fullmatch(STATUSES, text, re.IGNORECASE)) or _is_failure_text(text)


def _is_failure_text(text: str) -> bool:
    return is_failure_text(text)


def _has_error_message(value: dict[str, Any]) -> bool:
    match value:
        case {"__type": str(name), "message": str()} if _EXCEPTION_NAME.fullmatch(name):
            return True
        case {"message": str(message)} if value.keys() <= _MEMBERS_BESIDE_MESSAGE:
            name = value.get("type", "Error")
            return _is_failure_text(message) and bool(_EXCEPTION_NAME.fullmatch(str(name)))
        case {"detail": str(detail)} if len(value) == 1:
            return bool(re.fullmatch(STATUSES, detail))
        case {"detail": [_, *_] as issues} if len(value) == 1:
            return all(isinstance(each, dict) and {"loc", "msg"} <= each.keys() for each in issues)
    return False


def _is_error(error: Any) -> bool:
    match error:
        case str() if error.strip():
            return True
        case {"message": str()} | {"code": _} | {"type": str()}:
            return True
        case [str(), *_]:
            return True
        case [{"message": str()} | {"title": str()} | {"detail": str()}, *_]:
            return all(isinstance(each, dict) and each.keys() <= _ITEM_MEMBERS for each in error)
    return False


def _is_issue(value: Any) -> bool:
    """Return whether this is a zod issue about an argument; the TypeScript SDK sends it as text."""
    match value:
        case {"code": str(code), "path": list(), "message": str()}:
            return "_" in code
    return False


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_MAX_LENGTH = 600
_MAX_LINES = 7  # An error message has a few lines at most; a document has more.

# Decoration before the first word: an emoji, a level in brackets, or asterisks for bold.
_DECORATION_STARTS = "❌✖✗✘⛔🚫⚠🛑🔴[<*"
_DECORATION = re.compile(
    r"(?:[❌✖✗✘⛔🚫⚠🛑🔴]\ufe0f?\s*)*"
    r"(?P<level>\[(?:error|fatal|exception)\]:?\s*|<error>\s*)?(?:\[(?=Error: )|\*{0,2})",
    re.IGNORECASE,
)
_LEVEL = re.compile(
    r"\W{0,3}(?:error|fatal|warn(?:ing)?|info|note|debug|trace)\b\W|[45]\d\d [A-Z][a-z]+",
    re.IGNORECASE,
)
# Error pages from gateways, and messages from Python and pydantic; their first words are not
# typical of errors.
_KNOWN_MESSAGE = re.compile(
    rf"""<(?:!doctype\ html|html)\b.{{0,300}}?<title>\s*(?:[45]\d\d\s(?:-\s)?)?
        (?:{STATUSES.replace(" ", "[ ]")}|Service[ ]Temporarily[ ]Unavailable
          |Authorization[ ]Required)\s*</title>
    | '\w+'\ object\ (?:has\ no\ attribute\ '|is\ not\ (?:iterable|subscriptable|callable))
    | \d+\ validation\ errors?\ for\ \S+\n
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_KNOWN_STARTS = "<'0123456789"

# A label such as `Error:`, with the message after it.
_LABEL = re.compile(
    r"""(?:
      (?:(?:fatal|internal|unexpected|unknown|network|api|http|database|server|tool|runtime|system|
            json|parse|syntax|validation|input|output|mcp|sql|query|execution|connection|request|
            authentication|rpc|upstream)\ )*error(?:\ \(?-?\d{1,6}\)?)?
    | error\ code(?=:\ [45]\d\d\b)
    | error\ (?:executing|calling|running|invoking)\ tool\b[^:\n]{0,80}
    | exception | fatal | panic | fehler | erreur | errore | erro | fout | ошибка
    | 错误 | 錯誤 | エラー | 오류
    )(?:(?:\*\*)?\s?[:：](?:\*\*)?\s*(?=\S)|\ -\ (?=(?-i:[a-z0-9]))|[.!](?=\s)|[.!]?$)""",
    re.VERBOSE | re.IGNORECASE,
)
_EXCEPTION = re.compile(r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?::\s(?=\S)|$)")

# Verbs for things that a program does and can fail to do.
_VERBS = (
    "access|allocate|analy[sz]e|authenticate|clone|commit|communicate|compile|"
    "complete|connect(?= (?:to|with)\\b|[.:!]|$)|contact|convert|copy|create|decode|decrypt|"
    "delete|deploy|deseriali[sz]e|"
    "download|encode|establish|evaluate|execute|export|extract|fetch|generate|import|"
    "initiali[sz]e|insert|install|invoke|load|locate|log in|mount|obtain|open(?! on )|parse|"
    "perform|process|publish|query|reach|read|register|remove|rename|render|resolve|retrieve|"
    "save|scrape|send|start|submit|sync|transcribe|translate|update|upload|validate|verify|"
    "write|find"
)
_VERB_STEMS = (
    "access|add|allocat|analy[sz]|apply|authenticat|call|clon|commit|communicat|compil|complet|"
    "connect|contact|convert|copy|creat|decod|decrypt|delet|deploy|download|encod|establish|"
    "evaluat|execut|export|extract|fetch|generat|gett|import|initiali[sz]|insert|install|invok|"
    "launch|list|load|mak|mov|obtain|open|pars|perform|process|publish|query|reach|read|register|"
    "remov|renam|render|resolv|retriev|runn|sav|scrap|search|send|start|stopp|submitt|sync|"
    "transcrib|translat|updat|upload|validat|verify|writ"
)
# `error handling` is a topic; `error annotating page 3:` is a message.
_ERROR_TOPICS = (
    "budget|check|cod|correct|detect|estimat|handl|logg|messag|monitor|rat|report|track|trapp"
)
# `Could not find any problems` is a result, not a failure.
_OBJECTS_OF_SEARCH = (
    "any|anything|an?|all|evidence|signs?|further|more|other|such|problems?|errors?|issues?|"
    "results?|match(?:es)?|differences?|duplicates?|vulnerabilit\\w+|bugs?|proof|traces?"
)
_PROGRAM_VERB = re.compile(_VERBS, re.IGNORECASE)
_PROSE = re.compile(r"[^.:;!\n]{0,80}, (?:the|he|she|they|it|his|her|its|their)\b")
_FAILURE_CLAUSE = re.compile(
    rf"""(?:
      failed\ to\ (?!(?:find|detect|identify|spot|see)\ (?:{_OBJECTS_OF_SEARCH})\b|reproduce\b)
        (?P<a>[a-z]+)\b
    | (?:(?:i\ (?:am|was)\ |we\ (?:are|were)\ )?unable\ to
        |(?:(?:i|we)\ )?could(?:\ not|n['’]t)|can(?:\ ?not|['’]t))
        \ (?:be\ )?(?P<b>{_VERBS.replace(" ", "[ ]")})\b(?!\ (?:{_OBJECTS_OF_SEARCH})\b)
    | error\ (?:while\ |when\ )?(?P<c>(?:{_VERB_STEMS})ing)\b
    | error\ (?P<d>handling)\ (?:the\ |your\ )?
        (?:request|call|message|response|command|tool|event|input|query)\b
    | error\ (?!(?:{_ERROR_TOPICS})ing\b)(?P<f>[a-z]+ing)\ [^:\n]{{1,80}}:\s
    | (?:unexpected\ |internal\ |unknown\ |unhandled\ )?(?:error|exception)
        \ (?:has\ )?(?P<e>occurred)(?:\ \(\w+\))?
        (?=$|[.:!,;]|\ (?:while|when|during|trying|with\ your)\b
          |\ [a-z]+ing\b|\ (?:in|on)\ (?:the\ |our\ )?(?:tool|function|server|request)\b)
    | there\ was\ an\ error\ (?P<g>[a-z]+ing|while|when|with)\b
    | you\ (?:do\ not|don['’]t)\ have\ (?:the\ )?(?P<h>permission|access)\b
    | you\ are\ not\ (?P<i>authori[sz]ed|authenticated|logged\ in)\b
    | (?:(?:i|we)\ (?:have\ )?)?encountered\ an\ (?P<k>error)(?=:\ |\ while\b|\ [a-z]+ing\b|$)
    | error\ (?P<l>al)\ [a-zé]+r\b | fehler\ (?P<m>beim)\ | erreur\ (?P<n>lors)\ d
    | erro\ (?P<o>ao)\ [a-z]+r\b | errore\ (?P<p>durante|nel)\b
    | (?:command|process)\ (?P<j>exited)\ with\ (?:exit\ )?(?:code|status)\ [1-9]
    )""",
    re.VERBOSE | re.IGNORECASE,
)

_STATUS = rf"(?: -|:)? (?:{STATUSES})"
_EXCEEDED = "(?: (?:was|has been))? (?:exceeded|reached|hit)"
_FAILED = "(?: execution)? failed(?: with [^:.\\n]+)?|(?: has)? timed out|(?: was)? aborted"
_INVALID = (
    "(?: (?:is|are|has))? (?:invalid|expired|missing|revoked|required|not (?:set|configured|valid))"
)
_ERRNOS = (
    "enoent eacces eperm eexist econnrefused econnreset etimedout enotfound eisdir enotdir enospc "
    "epipe eai_again ehostunreach"
)
_ERRNO = f"(?:{_ERRNOS.replace(' ', '|')})"
_CREDENTIAL = (
    r"(?: or (?:invalid|missing|expired))? (?:api[ -]?key|(?:(?:access|auth|bearer) )?token|"
    r"credentials|password)(?: (?:(?:was|were) )?(?:provided|supplied|given))?"
)
_ARGUMENT = (
    r"(?: required)? (?:arguments?|parameters?|params|input|json|request|tool|method)"
    r"(?=[:. ][^\n]|$)(?: ['\"`]\S+)?"
)
# Error messages with fixed wording: the first word, and a pattern for the rest.
_PHRASES = (
    ("400 401 402 403 404 405 408 409 410 413 422 429 500 501 502 503 504", _STATUS),
    ("http http/1.1 http/1.0 http/2 error", rf"(?: error)? [45]\d\d:?{_STATUS}"),
    ("http", r" [45]\d\d(?=$|:\s)"),
    ("request command query tool operation execution connection", _FAILED),
    (
        "api",
        rf" (?:call|request)(?:{_FAILED})| rate limit{_EXCEEDED}| quota{_EXCEEDED}| key{_INVALID}",
    ),
    ("tool", f" call(?:{_FAILED})"),
    ("tool", r" ['\"`]?[\w.-]+['\"`]? failed(?=: )"),
    ("connection", r" to \S+ failed"),
    ("database", " (?:connection|query)(?: has)? failed"),
    ("validation", " failed(?=$|: )"),
    ("max maximum", " (?:number of )?retries(?: was)? (?:exceeded|reached)"),
    ("dial", r" (?:tcp|udp) [^\n]{0,200}(?:connection refused|timeout|no such host|unreachable)"),
    ("object", r" of type \w+ is not JSON serializable"),
    ("rate", f" limit{_EXCEEDED}"),
    ("quota", _EXCEEDED),
    ("daily monthly", f" quota{_EXCEEDED}"),
    ("too", " many requests"),
    ("internal", " (?:server )?error"),
    ("server", " error"),
    ("service server", "(?: is)?(?: temporarily| currently)? (?:unavailable|overloaded|busy)"),
    ("bad", " gateway"),
    ("gateway", " time-?out"),
    ("connection", "(?: was| has been)? (?:refused|reset(?: by peer)?|lost|error)"),
    ("network", " (?:error|is unreachable)"),
    ("fetch", " failed"),
    ("socket", " hang up"),
    ("unauthorized forbidden", ""),
    ("access permission", "(?: is| was)? denied"),
    ("not", " (?:authori[sz]ed|authenticated|logged in)"),
    ("authentication authorization authorisation login", " (?:failed|required|error)"),
    ("token credentials session", _INVALID),
    ("invalid missing expired incorrect bad", _CREDENTIAL),
    ("invalid missing unknown", _ARGUMENT),
    ("unknown", " error"),
    ("file tool method command resource model", " not found"),
    ("no", " such (?:file or directory|tool)| space left on device"),
    ("no", " (?:api key|token|credentials)(?: (?:was|were))? (?:provided|supplied|given)"),
    ("resource", " exhausted"),
    ("insufficient", " (?:permissions|privileges|scope)"),
    ("timeout timed", "(?: out| error| exceeded)?(?!:)"),
    ("unexpected", r" token \S+ in json(?: at position \d+)?| end of (?:json )?input"),
    ("something", " went wrong"),
    ("out", " of memory"),
    ("disk", "(?: is)? full"),
    ("division", " by zero"),
    (_ERRNOS, "(?=:)"),
    ("connect getaddrinfo spawn open read write", rf"(?: \S+)? {_ERRNO}\b(?: \S+)?"),
)
# After such a phrase, the message ends or gives a reason.
_PHRASE_END = (
    r"(?=\s*$|[.!:]\s|[.!]$| \(|\n|, (?:please|try|retry|wait)| - | after \d| (?:while|because)\b"
    r"| (?:for|by|to) (?:url|user|project|tool|model|the server|your|this|\S*[.:/'\"`]\S))"
)
_PHRASES_BY_WORD = {
    word: "|".join(rest for words, rest in _PHRASES if word in words.split())
    for words, _ in _PHRASES
    for word in words.split()
}
_LABEL_WORDS = _words(
    "error exception fatal internal unexpected unknown network api http database server tool "
    "runtime system json parse syntax validation input output mcp sql query execution connection "
    "request authentication rpc upstream panic fehler erreur errore erro fout ошибка"
)
_UNSPACED_STARTS = ("错", "錯", "エ", "오")  # No space follows the label.
_CLAUSE_WORDS = _words(
    "failed unable i we could couldn't couldn’t can can't can’t cannot error exception unexpected "
    "internal unknown unhandled there you command process encountered fehler erreur erro errore"
)
_FILLERS = ("a", "an", "the", "your", "sorry,", "oops!", "oops,", "unfortunately,", "i'm", "but")

# A count or a field in a report, such as `Errors: 3`; a number such as 404 is a status.
_COUNT = re.compile(
    r"[^:\n]{1,60}\s?:\s+(?:(?:(?![45]\d\d\b)\d+|no|-)\s*(?:$|[,;.\n(/|%])|(?:none|n/a|null|false)\b"
    r"|[±~≈]\s?\d|\d+ of \d|\d+ (?!(?:milli)?seconds)[a-z]+s\s*(?:$|[,;.\n]))",
    re.IGNORECASE,
)
_HEADING = re.compile(
    r"(?:what|how|why|when|where|which|causes?|explained)\b"
    r"|(?:an?|the)\ (?:\w+\ )?(?:guide|introduction|overview|history|memoir|novel|tutorial)\b",
    re.IGNORECASE | re.VERBOSE,
)
_QUESTION = re.compile(r"[^.!:;\n]{0,120}\?(?:\s|$)")
_CLAUSE_END = re.compile(r"[:.,;(\n]|\ (?:because|since|as|that|if|when|while|whether)\ ")
_DEFINITION_VERB = re.compile(r"\b(?:is|was|are|were|means?|refers|occurs|happens|indicates)\b")
_SMALL_WORDS = _words("a an and at by for from in of on or the to with")
# Words that are common in error messages and rare in titles.
_ERROR_WORDS = re.compile(
    r"\b(?:no|not|in\w+|un\w+|fail\w*|denied|refused|forbidden|missing|exceeded|expired|time\w*|"
    r"error|exception|required|already|exists?|closed|reset|disabled|blocked|bad|illegal|too|lost|"
    r"wrong|conflict|duplicate|rejected|null|corrupt\w*|limit|quota|permission|access|server|"
    r"please|must|cannot)\b",
    re.IGNORECASE,
)


def is_failure_text(text: str) -> bool:
    """Return whether the text is the error message of a failed call."""
    if text.startswith("Traceback (most"):
        return True
    if not text:
        return False
    if text[0] in _KNOWN_STARTS and _KNOWN_MESSAGE.match(text):
        return True
    if len(text) > _MAX_LENGTH or text.count("\n") >= _MAX_LINES:
        return False
    start, has_level = 0, False
    if text[0] in _DECORATION_STARTS and (decoration := _DECORATION.match(text)):
        start, has_level = decoration.end(), bool(decoration["level"])
    if not has_level and not _begins_like_error(text, start):
        return False
    return not _is_log(text) and not _COUNT.match(text, start)


def _begins_like_error(text: str, start: int) -> bool:
    """Return whether the text begins like an error message; the first word usually decides."""
    words = text[start : start + 80].split(maxsplit=5)
    while len(words) > 1 and words[0].lower() in _FILLERS:
        start = text.index(words[1], start + len(words[0]))
        words = words[1:]
    if not words:
        return False
    word = words[0].rstrip(":.,!*").lower()
    if (word in _LABEL_WORDS or word[:1] in _UNSPACED_STARTS) and (
        found := _LABEL.match(text, start)
    ):
        return not _is_title(text[found.end() :])
    if word.endswith(("error", "exception")) and (found := _EXCEPTION.match(text, start)):
        return not _HEADING.match(text, found.end())
    if word in _CLAUSE_WORDS and (found := _FAILURE_CLAUSE.match(text, start)):
        return _is_failure_sentence(text, found)
    return word in _PHRASES_BY_WORD and _is_failure_phrase(text, start, word)


def _is_failure_sentence(text: str, found: re.Match[str]) -> bool:
    """Return whether the match is in a sentence, not in a title, a question or a definition."""
    verb, rest = found[found.lastgroup or 0], text[found.end() :]
    if not verb.islower() and not verb.isupper():
        return False
    # "failed to" with a verb that no program performs is prose: "Failed to score, the team …".
    is_prose = found.lastgroup == "a" and not _PROGRAM_VERB.fullmatch(verb) and _PROSE.match(rest)
    return not is_prose and not _is_question_or_definition(rest)


def _is_failure_phrase(text: str, start: int, word: str) -> bool:
    found = _phrase_pattern(word).match(text, start + len(word))
    if not found:
        return False
    rest = text[found.end() :].lstrip(":.! ")
    return not _is_title(rest) and not _QUESTION.match(text, start)


@cache
def _phrase_pattern(word: str) -> re.Pattern[str]:
    return re.compile(f"(?:{_PHRASES_BY_WORD[word]}){_PHRASE_END}", re.IGNORECASE)


def _is_title(words: str) -> bool:
    """Return whether the words are the title of a book or an article."""
    if _HEADING.match(words):
        return True
    head = re.split(r"[,.;:(\n]|\ [-–—]\ ", words, maxsplit=1)[0].split()
    names = [word for word in head if word.lower() not in _SMALL_WORDS]
    return (
        len(head) > 1
        and any(not word.isupper() for word in names)
        and all(word[0].isupper() for word in names)
        and not _ERROR_WORDS.search(words)
    )


def _is_question_or_definition(sentence: str) -> bool:
    """Return whether the sentence is a question or a definition."""
    clause = _CLAUSE_END.split(sentence, maxsplit=1)[0]
    return bool(_QUESTION.match(sentence) or _DEFINITION_VERB.search(clause))


def _is_log(text: str) -> bool:
    """Return whether several lines begin with a level, as in a log or compiler output."""
    return "\n" in text and sum(bool(_LEVEL.match(line)) for line in text.split("\n")) > 1
