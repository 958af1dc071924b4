"""The modelled hosts in the matrix: what the model behind each sees of the 15 replies."""

from __future__ import annotations

import base64
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.matrix.builders import app as builders
from tests.matrix.parts import CASES, ERROR, cell

from answerback import Audio, Image, connect
from answerback.dialects.hosts import HOSTS
from answerback.dialects.seen_reply import SeenReply

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
Seen = Mapping[str, Mapping[str, Mapping[str, str]]]
"""What is seen, by host, server and tool."""


def seen_in_hosts(servers: Mapping[str, Any]) -> Seen:
    """What each host shows of the replies of *servers*: commands, or Apps in this process."""
    seen: dict[str, dict[str, dict[str, str]]] = {
        host: {name: {} for name in servers} for host in HOSTS
    }
    path = {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    for name, target in servers.items():
        options: dict[str, Any] = {"env": path} if isinstance(target, Sequence) else {}
        with connect(target, **options) as server:
            for case in CASES:
                reply = server.call(case.tool)
                for host in HOSTS:
                    seen[host][name][case.tool] = _text(reply.as_seen_by(host))
    return seen


def commands(servers: Mapping[str, list[str]]) -> dict[str, list[str]]:
    return {name: [sys.executable, *command] for name, command in servers.items()}


def _text(seen: SeenReply) -> str:
    """All that a model is shown, as one text in which the marks of the parts are found."""
    media = [each for each in seen.parts if isinstance(each, Image | Audio)]
    shown = [each.url or base64.b64encode(each.data).decode() for each in media]
    return "\n".join([seen.text, *shown, *([ERROR] if seen.failed else [])])


def host_cells(seen: Seen, tool: str) -> list[str]:
    """The cells of one row; where the servers differ, that of Answerback is first."""
    (case,) = (each for each in CASES if each.tool == tool)
    cells = []
    for servers in seen.values():
        found = [cell(case, tools[tool]) for tools in servers.values()]
        cells.append(found[0] if len(set(found)) == 1 else " / ".join(found))
    return cells


def host_table(seen: Seen) -> str:
    titles = [HOSTS[host].title for host in seen]
    lines = ["| reply in a modelled host | " + " | ".join(titles) + " |"]
    lines.append("|---" * (len(titles) + 1) + "|")
    for case in CASES:
        lines.append(f"| {case.about} | " + " | ".join(host_cells(seen, case.tool)) + " |")
    return "\n".join(lines) + "\n"


def source_table() -> str:
    lines = [
        "| host | in `as_seen_by` | shows | a large reply | images | as of | source |",
        "|---" * 7 + "|",
    ]
    for name, host in HOSTS.items():
        half = host.half if host.half == "both" else f"`{host.half}`"
        cells = [host.title, f"`{name}`", half, host.size, host.images, host.date, host.source]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def builder_table() -> str:
    """What each host loses of the twenty replies of our own builders."""
    lines = ["| reply | lost |", "|---|---|"]
    with connect(builders) as server:
        for tool in builders.tools:
            reply = server.call(tool)
            lost = {host: reply.as_seen_by(host).lost for host in HOSTS}
            cells = [
                f"{host}: {', '.join(each.part for each in parts)}"
                for host, parts in lost.items()
                if parts
            ]
            lines.append(f"| {tool.replace('_', ' ')} | {'; '.join(cells) or 'nothing'} |")
    return "\n".join(lines) + "\n"
