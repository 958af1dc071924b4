"""AB5xx: what a reply must not tell. Only texts in which `secrets` sees one are looked at."""

from __future__ import annotations

import re
from typing import Any

from ..detectors.secrets import Secret, mask
from ..examples import MCP_FAILURE, said
from ..finding import ENVELOPE, MCP, PROBLEM, REST, About, Fault, Faults, Scope, rule
from ..json_values import parent_of, quoted
from ..reply_view import Subject

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
# Each of the above has one of these in it, and they are sooner looked for.
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
# Each of the above has one of these in it, in whichever case.
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

_ADDRESSES = {
    "dsn": "an address with a password in it",
    "connection": "a connection string with a password in it",
}
_TOKENS = {
    "bearer": "a bearer token",
    "basic": "a name and a password for HTTP Basic",
    "token": "a JSON web token",
}
_PATH_ENDS = re.compile(r"[\s'\"`()<>]|:\d|[:,;](?=\s|$)|$")


def _mask_it(found: dict[str, Any], pointer: str) -> None:
    holder, name = parent_of(found, pointer)
    key = int(name) if isinstance(holder, list) else name
    holder[key] = mask(holder[key])


def _of(sorts: dict[str, str], secrets: list[Secret], pointer: str) -> Faults:
    """What is said of the first secret of these sorts."""
    for secret in secrets:
        if secret.sort in sorts:
            return [Fault(pointer, sorts[secret.sort])]
    return ()


@rule(
    "AB501",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM),
        hint="log it, and tell the caller what to do instead",
        bad=said(
            'Traceback (most recent call last):\n  File "app.py", line 9, in get\nKeyError: 3',
            isError=True,
        ),
        good=MCP_FAILURE,
    ),
)
def traceback_shown(it: Subject) -> Faults:
    """A traceback shows strangers the code, and tells a model nothing it can act upon."""
    said = it.error_texts() if it.failed else _led_by_one(it)
    if not said:
        return ()
    return [
        Fault(pointer, "the reply shows a traceback")
        for pointer, text in said
        if _has_one(text, _TRACEBACK_CLUES) and _TRACEBACK.search(text)
    ]


def _has_one(text: str, clues: tuple[str, ...]) -> bool:
    for clue in clues:  # noqa: SIM110 -- any() takes twice as long
        if clue in text:
            return True
    return False


def _led_by_one(it: Subject) -> list[tuple[str, str]]:
    """A success may well quote a traceback, from a log or a run of tests; it does not begin so."""
    for index, text in it.texts:
        if text.startswith("Traceback (most"):
            return [(f"/content/{index}/text", text)]
    return []


@rule(
    "AB502",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, part="leak"),
        hint="change the password, and leave the address out of replies",
        bad=said("cannot reach postgres://shop:hV7-tea@db.example.com/shop", isError=True),
        good=said("Database connection failed. Please try again later.", isError=True),
        fix=_mask_it,
    ),
)
def password_in_address(it: Subject, secrets: list[Secret], pointer: str) -> Faults:
    """Whoever reads the reply, or its log, can log in to what the address names."""
    return _of(_ADDRESSES, secrets, pointer)


@rule(
    "AB503",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, part="leak"),
        hint="withdraw the token, and leave it out of replies",
        bad=said("refused: Authorization: Bearer q83hfT2kLmZ04xVbN1cRwE", isError=True),
        good=said("refused: Authorization: Bearer <token>", isError=True),
        fix=_mask_it,
    ),
)
def token_shown(it: Subject, secrets: list[Secret], pointer: str) -> Faults:
    """A token is all that is needed to act as the one it was given to."""
    return _of(_TOKENS, secrets, pointer)


@rule(
    "AB504",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, part="leak"),
        hint="replace the key pair, and leave the key out of replies",
        bad=said(
            "-----BEGIN EC PRIVATE KEY-----\n"
            "MHcCAQEEIFakeFakeFakeFakeFakeFakeFakeFakeFakeFakeoAoGCCqGSM49\n"
            "-----END EC PRIVATE KEY-----"
        ),
        good=said("A PEM file begins with -----BEGIN EC PRIVATE KEY----- and then has …"),
        fix=_mask_it,
    ),
)
def private_key_shown(it: Subject, secrets: list[Secret], pointer: str) -> Faults:
    """A private key that was shown once is private no more."""
    return _of({"private-key": "a private key"}, secrets, pointer)


@rule(
    "AB505",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, part="leak"),
        hint="withdraw the key, and leave it out of replies",
        bad=said('{"env":{"GITHUB_TOKEN":"ghp_1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R"}}'),
        good=said('{"env":{"GITHUB_TOKEN":"set"}}'),
        fix=_mask_it,
    ),
)
def api_key_shown(it: Subject, secrets: list[Secret], pointer: str) -> Faults:
    """Keys of well-known services are searched for by everybody, and used within minutes."""
    return _of({"key": "an API key"}, secrets, pointer)


@rule(
    "AB506",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, when="failure"),
        severity="warning",
        hint="say what the caller can do: Database connection failed. Please try again later.",
        bad=said("PostgreSQL connection refused at localhost:5432 with user 'admin'", isError=True),
        good=said("Database connection failed. Please try again later.", isError=True),
    ),
)
def internals_in_error(it: Subject) -> Faults:
    """Hosts, ports and users of what stands behind a tool help an attacker and nobody else."""
    return [
        Fault(pointer, f"the error tells of the inside: {quoted(found[0].strip())}")
        for pointer, text in it.error_texts()
        if _has_one(text.lower(), _INTERNALS_CLUES) and (found := _INTERNALS.search(text))
    ]


@rule(
    "AB507",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, when="failure"),
        severity="warning",
        hint="name the file as the caller knows it, or not at all",
        bad=said("cannot open /home/deploy/shop/settings.json", isError=True),
        good=said("cannot open settings.json", isError=True),
    ),
)
def path_in_error(it: Subject) -> Faults:
    """A path shows who runs the server and what is installed there."""
    return [
        Fault(pointer, f"the error shows a path: {quoted(_whole(text, found), 100)}")
        for pointer, text in it.error_texts()
        if ("/" in text or "\\" in text) and (found := _PATHS.search(text))
    ]


def _whole(text: str, found: re.Match[str]) -> str:
    """The path up to its end, of which a few steps have told that it is one."""
    if found["source"]:
        return found["source"]
    end = _PATH_ENDS.search(text, found.end())
    return text[found.start() : end.start() if end else None].rstrip(".,:;")
