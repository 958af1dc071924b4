"""The pages on what crosses a wire: commands, error codes, variables, routes, headers, keys."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from importlib import import_module
from typing import NoReturn
from unittest.mock import patch

import answerback
from answerback.cli.program import COMMANDS, WITH_SERVERS, WITHOUT_TARGET, Program
from answerback.core.metadata import KEYS
from answerback.errors import BUILT_IN, CODES

from .guides import FLAG_GUIDES
from .markdown import Row, anchor, table, title_of
from .sentences import EXAMPLES, META, READ, ROUTES, SENT, VARIABLES
from .source import comments_above

_PLACES = {
    "tool": "a tool",
    "result": "a result",
    "resource": "a resource",
    "content": "its content",
    "block": "a block",
    "request": "a request",
}


class _Found(Exception):
    def __init__(self, parser: argparse.ArgumentParser) -> None:
        super().__init__()
        self.parser = parser


def parser_of(command: str) -> argparse.ArgumentParser:
    """Return the parser that a command makes, which only the command itself can make."""

    def stop(self: argparse.ArgumentParser, *_: object) -> NoReturn:
        raise _Found(self)

    module = import_module(f"answerback.cli.{command}")
    with patch.multiple(argparse.ArgumentParser, parse_args=stop, print_help=stop):
        try:
            module.run(Program("answerback"), ["--help"])
        except _Found as found:
            return found.parser
    raise LookupError(f"{command} makes no parser")


def flag_rows(actions: Iterable[argparse.Action], parser: argparse.ArgumentParser) -> list[Row]:
    """Return arguments and flags, each with its meaning."""
    rows = []
    for action in actions:
        hidden = action.help == argparse.SUPPRESS or action.dest in ("help", "subcommand")
        if not hidden:
            rows.append([_names(action), _meaning(action, parser)])
    return rows


def _names(action: argparse.Action) -> str:
    value = action.metavar or (action.dest.upper() if action.nargs != 0 else "")
    if action.choices and not action.metavar:
        value = "|".join(map(str, action.choices))
    names = [f"{each} {value}".strip() for each in action.option_strings] or [str(value)]
    return ", ".join(f"`{each}`" for each in names)


def _meaning(action: argparse.Action, parser: argparse.ArgumentParser) -> str:
    text = (action.help or "") % {"default": action.default, "prog": parser.prog}
    if action.dest == "target":
        wanted = "the App or a server" if parser.prog.split()[-1] in WITH_SERVERS else "the App"
        text = f"{wanted}; see [targets](commands.md#targets)"
    if action.default not in (None, False, []) and action.default and "default" not in text:
        text += f" (default: {action.default})"
    guide = FLAG_GUIDES.get(action.option_strings[0] if action.option_strings else "")
    return f"{text}; see [{title_of(guide)}](../{guide})" if guide else text


def groups_of(parser: argparse.ArgumentParser) -> dict[str, list[argparse.Action]]:
    """Return a parser's arguments by group; "" has those of no group."""
    found: dict[str, list[argparse.Action]] = {"": []}
    for group in parser._action_groups:
        name = "" if group in parser._action_groups[:2] else (group.title or "")
        found.setdefault(name, []).extend(group._group_actions)
    return {name: actions for name, actions in found.items() if actions or not name}


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def command_line() -> str:
    lines = ["# Command line", "", "Every command and flag.", ""]
    lines += [
        "[Commands](commands.md) explains targets, servers and output. In a program that runs"
    ]
    lines += ["its own App, as in `python calculator.py serve`, no command takes a target."]
    lines += [
        "`answerback --help` lists the commands, and `answerback --version` prints the version."
    ]
    lines += [""]
    shared: dict[str, list[Row]] = {}
    for command, text in COMMANDS.items():
        parser = parser_of(command)
        lines += [f"## {command}", "", _sentence(text), "", *_usage(parser)]
        for title, actions in groups_of(parser).items():
            rows = flag_rows(actions, parser)
            if title:
                heading = title.partition(" (")[0].capitalize()
                # `console` has no --timeout.
                shared[heading] = max(shared.get(heading, []), rows, key=len)
                lines += [f"It also takes the [{heading.lower()}](#{anchor(heading)}).", ""]
            elif rows:
                lines += _table(rows)
        for name, inner in subcommands(parser).items():
            lines += [f"### {command} {name}", "", _sentence(inner.description or ""), ""]
            lines += [*_usage(inner), *_table(flag_rows(inner._actions, inner))]
    for heading, rows in shared.items():
        lines += [f"## {heading}", "", "For a URL, a command, or an mcp.json.", "", *_table(rows)]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].strip()}."


def _usage(parser: argparse.ArgumentParser) -> list[str]:
    if subcommands(parser):
        return []
    text = " ".join(parser.format_usage().split()).removeprefix("usage: ").replace("[-h] ", "")
    return ["```text", text, "```", ""]


def _table(rows: list[Row]) -> list[str]:
    return table(["argument", "meaning"], rows)


def commands() -> list[str]:
    """Return the table of all commands, for the page that explains them."""
    rows = []
    for command, text in COMMANDS.items():
        example = WITHOUT_TARGET.get(command, EXAMPLES.get(command, "calculator.py"))
        link = f"[`{command}`](command-line.md#{command})"
        rows.append([link, text, f"`answerback {command} {example}`"])
    return table(["command", "does", "for example"], rows)


def error_codes() -> str:
    """Return the page on error codes, from the one table of them."""
    classes = [getattr(answerback, name) for name in answerback.__all__]
    raised = {
        each.code: f"[`{each.__name__}`](api/errors.md#{each.__name__.lower()})"
        for each in classes
        if isinstance(each, type) and issubclass(each, answerback.ToolError)
    }
    rows = []
    for name, code in CODES.items():
        if name in BUILT_IN:
            mcp = "`isError`" if code.rpc is None else f"JSON-RPC {code.rpc}"
            retried = "yes" if code.retryable else "no"
            statuses = [str(code.status), str(code.exit), mcp, retried]
            rows.append([f"`{name}`", raised.get(name, "–"), *statuses, code_sentences()[name]])
    head = ["code", "class", "HTTP, CGI", "exit status", "MCP", "retryable", "meaning"]
    lines = ["# Error codes", "", "Each code on every wire.", ""]
    lines += ["[Codes](../start/replies.md#codes) says how your own codes are treated, and"]
    lines += ["[details](../start/replies.md#details) has the members that programs can read.", ""]
    lines += table(head, rows)
    lines += ["`isError` is a result that a model can read and act on; a JSON-RPC error is for the"]
    lines += ["client. Exit statuses from 64 on are those of `sysexits.h`.", ""]
    lines += ["## An example: RATE_LIMITED", "", "If a tool raises"]
    lines += ['`RateLimited("too many calls", retry_after=5)`, the caller gets `RATE_LIMITED`.', ""]
    reply = answerback.failure("too many calls", "RATE_LIMITED", {"retry_after": 5})
    app = answerback.App("weather")
    sent = {"MCP": app.write(reply, "mcp"), "REST, with status 429": app.write(reply, "rest")}
    for wire, body in sent.items():
        lines += [f"Over {wire}:", "", "```json", json.dumps(body, indent=2), "```", ""]
    lines += ["REST sends the code as `X-Error-Code` and `retry_after` as `Retry-After`."]
    lines += ["[Dialects](contracts.md#dialects) has the other forms.", ""]
    return "\n".join(lines)


def code_sentences() -> dict[str, str]:
    """Return the sentence about each code: the comment above its row."""
    comments = comments_above("answerback.errors")
    found = {row.partition(": Code(")[0].strip('"'): text for row, text in comments.items()}
    return {name: found.get(name, "") for name in CODES if name in BUILT_IN}


def environment() -> str:
    rows = [[f"`{name}`", reader, text] for name, (reader, text) in VARIABLES.items()]
    lines = ["# Environment variables", "", "Every variable that is read. `app.asgi()` is an app"]
    lines += ["under another server, such as uvicorn.", ""]
    lines += table(["variable", "read by", "meaning"], rows)
    lines += ["In the values of `--token`, `--header` and `--env`, and in a host's file, `${NAME}`"]
    lines += ["stands for the variable `NAME`. A child process gets only a few of your variables;"]
    lines += ["see [child processes](../guides/client.md#child-processes). Python itself reads"]
    lines += [
        "`SSL_CERT_FILE` and `SSL_CERT_DIR`, the certificates of the servers that are called.",
        "",
    ]
    return "\n".join(lines)


def http() -> str:
    lines = ["# HTTP routes and headers", "", "What a server answers, reads and sends.", ""]
    lines += [
        "[Wires](wires.md#rest) has examples, and the status of each refusal.",
        "",
        "## Routes",
    ]
    rows = [[f"`{path or part}`", *more] for part, (path, *more) in ROUTES.items()]
    lines += ["", *table(["route", "methods", "does"], rows)]
    lines += ["A slash at the end of a path is ignored. `@app.route` adds pages of your own.", ""]
    for title, found in (("Request", READ), ("Response", SENT)):
        rows = [[f"`{_written(name)}`", wire, text] for name, (wire, text) in found.items()]
        lines += [f"## {title} headers", "", "CGI has the headers of REST.", ""]
        lines += table(["header", "wire", "meaning"], rows)
    return "\n".join(lines)


def _written(name: str) -> str:
    """Return a header's name in its usual letters."""
    known = {"www": "WWW", "id": "ID", "api": "API", "ip": "IP"}
    if name == "mcp-session-id":
        return "Mcp-Session-Id"
    return "-".join(known.get(each, each.title()) for each in name.split("-"))


def host_keys() -> list[str]:
    """Return the table of the keys that hosts define."""
    comments = comments_above("answerback.core.metadata")
    texts = [text for row, text in comments.items() if row.startswith("MetaKey(")]
    rows = []
    for key, text in zip(KEYS, texts, strict=True):
        places = ", ".join(_PLACES[each] for each in key.places)
        rows.append([f"`{key.name}`", places, key.kind.expected, text, key.source])
    return table(["key", "on", "value", "meaning", "defined by"], rows)


def other_keys() -> list[str]:
    """Return the table of Answerback's own keys, and of MCP's."""
    rows = [[f"`{name}`", place, text] for name, (place, text) in META.items()]
    return table(["key", "on", "meaning"], rows)
