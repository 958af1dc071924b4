"""AB5xx: a reply shows no secrets, tracebacks, paths or addresses of internal systems."""

from __future__ import annotations

import re
from typing import Any

from ...core.secrets import Secret, mask_forms, mask_part
from ..finding import (
    ENVELOPE,
    MCP,
    MCP_FAILURE,
    PROBLEM,
    REST,
    Fault,
    Faults,
    Scope,
    rule,
    text_result,
)
from ..reply_view import ReplyView, parent_of, quoted

_TRACEBACK = re.compile(
    r"""Traceback\ \(most\ recent\ call\ last\):\s+File\ "
    | (?:^|\n)[ \t]+at\ [^\n]{1,200}:\d+(?::\d+)?\)?\s?\n[ \t]+at\ \S   # node
    | (?:^|\n)[ \t]+at\ [\w.$<>]{1,200}\([\w.]{1,80}(?::\d+)?\)   # Java
    | (?:^|\n)[ \t]+at\ [^\n(]{1,200}\([^\n)]{0,200}\)\ in\ \S[^\n]{0,200}:line\ \d   # .NET
    | (?:^|\n)Stack\ trace:\s+\#0\    # PHP
    | \bgoroutine\ \d+\ \[[a-z ]+\]:
    | thread\ '[^']*'\ panicked\ at
    | \.rb:\d+:in\ `
    """,
    re.VERBOSE,
)
# Every match of the pattern above contains one of these, which `in` finds faster.
_TRACEBACK_CLUES = (
    *("Traceback (", " at ", "\tat ", "Stack trace:"),
    *("goroutine ", "panicked at", ".rb:"),
)
_INTERNALS = re.compile(
    r"""\bE(?:CONNREFUSED|HOSTUNREACH|TIMEDOUT)\ +(?:\d|\[|::|/)
    | \b(?:PostgreSQL|Postgres|MySQL|MariaDB|Redis|MongoDB|SQL\ Server|Oracle|RabbitMQ|Kafka)\b
        [^\n]{0,80}?\s[\w.-]{1,80}:\d{2,5}\b
    | \bconnection\ to\ server\ at\ "[^"\n]{1,100}" | \b(?:pymongo\.errors|redis\.exceptions)\.\w
    | \baccepting\ TCP/IP\ connections\ on\ port\ \d+
    | \bauthentication\ failed\ for\ user\ ["']
    | \bfor\ user\ '[^']+'@'
    | \bSQLSTATE\[ | \bORA-\d{5}\b | \bpsycopg2?\.\w+ | \bsqlalchemy\.exc\. | \bpymysql\.err\.
    | \b(?:password|pwd)=(?![*<$\s])[^\s;&,'"]{4,}
    """,
    re.VERBOSE | re.IGNORECASE,
)
# Every match of the pattern above, in lower case, contains one of these.
_INTERNALS_CLUES = (
    *("econnrefused", "ehostunreach", "etimedout", "server at", "tcp/ip", "for user"),
    *("postgres", "mysql", "mariadb", "redis", "mongo", "sql server", "oracle", "rabbitmq"),
    *("kafka", "sqlstate[", "ora-", "psycopg", "sqlalchemy.exc", "password=", "pwd="),
)
_PATHS = re.compile(
    r"""(?P<path>/(?:home|Users)/[^/\s'"]+/ | \b[A-Z]:\\+Users\\+[^\\\s]+\\ | /root/[\w.]
    | [/\\](?:site-packages|dist-packages|node_modules)[/\\]
    | /usr/(?:local/)?lib/python | /var/(?:www|task)/ | /opt/[\w.-]{1,80}/[\w./-]{1,160}\.\w+)
    | (?:^|[\s("'])(?P<source>(?:/|[A-Z]:\\)[\w./\\ -]{1,160}
        \.(?:py|js|mjs|cjs|ts|rb|php|java|go|rs|cs))(?::\d+|",\ line\ \d+)
    """,
    re.VERBOSE,
)

_PASSWORD_KINDS = {
    "dsn": "an address with a password in it",
    "connection": "a connection string with a password in it",
}
_TOKEN_KINDS = {
    "bearer": "a bearer token",
    "basic": "a user name and password for HTTP Basic",
    "token": "a JSON web token",
}
_PATH_END = re.compile(r"[\s'\"`()<>]|:\d|[:,;](?=\s|$)|$")


def _mask_secrets(reply: dict[str, Any], pointer: str) -> None:
    holder, name = parent_of(reply, pointer)
    key = int(name) if isinstance(holder, list) else name
    holder[key] = mask_forms(holder[key])


def _first_fault(kinds: dict[str, str], secrets: list[Secret], pointer: str) -> Faults:
    """Return a fault for the first secret of these kinds; *kinds* maps each kind to its message."""
    for secret in secrets:
        if secret.kind in kinds:
            return [Fault(pointer, kinds[secret.kind])]
    return ()


@rule(
    "AB501",
    scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM),
    hint="log it, and tell the caller what to do instead",
    bad=text_result(
        'Traceback (most recent call last):\n  File "app.py", line 9, in get\nKeyError: 3',
        isError=True,
    ),
    good=MCP_FAILURE,
)
def traceback_shown(reply: ReplyView) -> Faults:
    """A traceback exposes the code to strangers, and gives a model nothing to act on."""
    texts = reply.error_texts() if reply.failed else _traceback_in_success(reply)
    if not texts:
        return ()
    return [
        Fault(pointer, "the reply shows a traceback")
        for pointer, text in texts
        if _contains_any(text, _TRACEBACK_CLUES) and _TRACEBACK.search(text)
    ]


def _contains_any(text: str, clues: tuple[str, ...]) -> bool:
    for clue in clues:  # noqa: SIM110 -- any() takes twice as long
        if clue in text:
            return True
    return False


def _traceback_in_success(reply: ReplyView) -> list[tuple[str, str]]:
    """Return the first text that begins with a traceback; a success may quote one further down."""
    for index, text in reply.texts:
        if text.startswith("Traceback (most"):
            return [(f"/content/{index}/text", text)]
    return []


@rule(
    "AB502",
    scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, part="leak"),
    hint="change the password, and leave the address out of replies",
    bad=text_result("cannot reach postgres://shop:hV7-tea@db.example.com/shop", isError=True),
    good=text_result("Database connection failed. Please try again later.", isError=True),
    fix=_mask_secrets,
)
def password_in_address(reply: ReplyView, secrets: list[Secret], pointer: str) -> Faults:
    """Anyone who reads the reply or its log can log in to the server at that address."""
    return _first_fault(_PASSWORD_KINDS, secrets, pointer)


@rule(
    "AB503",
    scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, part="leak"),
    hint="revoke the token, and leave it out of replies",
    bad=text_result("refused: Authorization: Bearer q83hfT2kLmZ04xVbN1cRwE", isError=True),
    good=text_result("refused: Authorization: Bearer <token>", isError=True),
    fix=_mask_secrets,
)
def token_shown(reply: ReplyView, secrets: list[Secret], pointer: str) -> Faults:
    """Anyone who reads the token can act as its owner."""
    return _first_fault(_TOKEN_KINDS, secrets, pointer)


@rule(
    "AB504",
    scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, part="leak"),
    hint="replace the key pair, and leave the key out of replies",
    bad=text_result(
        "-----BEGIN EC PRIVATE KEY-----\n"
        "MHcCAQEEIFakeFakeFakeFakeFakeFakeFakeFakeFakeFakeoAoGCCqGSM49\n"
        "-----END EC PRIVATE KEY-----"
    ),
    good=text_result("A PEM file begins with -----BEGIN EC PRIVATE KEY----- and then has …"),
    fix=_mask_secrets,
)
def private_key_shown(reply: ReplyView, secrets: list[Secret], pointer: str) -> Faults:
    """A private key that has been shown is no longer private."""
    return _first_fault({"private-key": "a private key"}, secrets, pointer)


@rule(
    "AB505",
    scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, part="leak"),
    hint="revoke the key, and leave it out of replies",
    bad=text_result('{"env":{"GITHUB_TOKEN":"ghp_1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R"}}'),
    good=text_result('{"env":{"GITHUB_TOKEN":"set"}}'),
    fix=_mask_secrets,
)
def api_key_shown(reply: ReplyView, secrets: list[Secret], pointer: str) -> Faults:
    """Attackers search for keys to well-known services, and use them within minutes."""
    return _first_fault({"key": "an API key"}, secrets, pointer)


@rule(
    "AB506",
    scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, when="failure"),
    severity="warning",
    hint="say what the caller can do: Database connection failed. Please try again later.",
    bad=text_result(
        "PostgreSQL connection refused at localhost:5432 with user 'admin'", isError=True
    ),
    good=text_result("Database connection failed. Please try again later.", isError=True),
)
def internals_in_error(reply: ReplyView) -> Faults:
    """The hosts, ports and users of the systems behind a tool help only an attacker."""
    return [
        Fault(pointer, f"the error shows internals: {_quoted_part(text, *match.span())}")
        for pointer, text in reply.error_texts()
        if _contains_any(text.lower(), _INTERNALS_CLUES) and (match := _INTERNALS.search(text))
    ]


@rule(
    "AB507",
    scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, when="failure"),
    severity="warning",
    hint="name the file as the caller knows it, or not at all",
    bad=text_result("cannot open /home/deploy/shop/settings.json", isError=True),
    good=text_result("cannot open settings.json", isError=True),
)
def path_in_error(reply: ReplyView) -> Faults:
    """A path reveals who runs the server and what is installed there."""
    faults = []
    for pointer, text in reply.error_texts():
        if ("/" in text or "\\" in text) and (match := _PATHS.search(text)):
            start, end = match.span("source")
            if start < 0:
                # The match is only the beginning of the path.
                start, rest = match.start(), _PATH_END.search(text, match.end())
                path = text[start : rest.start() if rest else None]
                end = start + len(path.rstrip(".,:;"))
            path = _quoted_part(text, start, end, 100)
            faults.append(Fault(pointer, f"the error shows a path: {path}"))
    return faults


def _quoted_part(text: str, start: int, end: int, limit: int = 60) -> str:
    """Return a part of *text*, masking the secrets found in the whole text."""
    return quoted(mask_part(text, start, end).strip(), limit)
