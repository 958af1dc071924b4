"""`python -m tests.matrix.provider_requests` checks requests against the providers' own types.

Each tool of the examples, of the app with all cases and of large real servers is converted for each
provider, and so is each form of a reply. The official packages, in the versions whose rules
`models/provider_rules.py` names, then say whether they would take the request.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.clients.__main__ import install
from tests.clients.packages import Client
from tests.conftest import EVERYTHING, load_app

from answerback import Audio, Embedded, Image, Link, failure, success
from answerback.models import ModelTools, to_anthropic, to_gemini, to_openai, to_openai_responses

ROOT = Path(__file__).parent.parent.parent
PACKAGES = Client(
    name="provider types",
    driver="provider_types.py",
    pip=("openai==3.49.0", "anthropic==2.8.0", "google-genai==3.1.0"),
)
SECONDS = 300
PNG = Image(b"png", "image/png")
REPLIES = {
    "a text": success("Done."),
    "data": success(data={"a": [1, None, {"b": 2.5}]}),
    "a text and data": success("Seven.", 7),
    "a failure": failure("no city Osl", "CITY_UNKNOWN", {"near": ["Oslo"]}, hint="try Oslo"),
    "an image": success("A map.", content=[PNG]),
    "an image on the web": success(content=[Image(url="https://x.org/a.png")]),
    "a PDF": success(content=[Embedded("file:///a.pdf", blob=b"pdf", mime="application/pdf")]),
    "audio": success(content=[Audio(b"wav", "audio/wav")]),
    "a link": success(content=[Link("https://x.org/r", "report")]),
    "an embedded text": success(content=[Embedded("file:///a.txt", text="a")]),
    "nothing": success(),
    "an empty text": success(""),
}


def requests() -> Iterator[dict[str, Any]]:
    """The parts of requests: the kind of each, what it is about, and its JSON."""
    for about, tools in tool_sets():
        for how, kit, kind in kits(tools):
            for each in kit.tools:
                name = each.get("name") or each["function"]["name"]
                yield {"kind": kind, "about": f"{about}, {how}, {name}", "value": each}
    tools = [{"name": "t", "inputSchema": {}}]
    for about, reply in REPLIES.items():
        for how, kit, kind in kits(tools):
            for message in kit.messages([("call_1", reply, "t")]):
                yield {
                    "kind": _message_kind(kind, message),
                    "about": f"{about}, {how}",
                    "value": message,
                }


def tool_sets() -> Iterator[tuple[str, Any]]:
    for path in sorted((ROOT / "examples").glob("*.py")):
        if "app.run()" in path.read_text():
            yield path.stem, load_app(path)
    yield "everything", load_app(EVERYTHING)
    for path in sorted((ROOT / "tests" / "models" / "tool_lists").glob("*.json")):
        yield path.stem, json.loads(path.read_text())


def kits(tools: Any) -> Iterator[tuple[str, ModelTools, str]]:
    for strict in (False, True):
        how = "strict" if strict else "plain"
        yield how, to_openai(tools, strict=strict), "openai tool"
        yield how, to_openai_responses(tools, strict=strict), "responses tool"
        yield how, to_anthropic(tools, strict=strict), "anthropic tool"
    yield "functions", to_openai(tools, functions=True), "openai function"
    yield "plain", to_gemini(tools), "gemini tool"


def _message_kind(kind: str, message: dict[str, Any]) -> str:
    provider = kind.partition(" ")[0]
    if provider == "responses":
        return "responses item"
    if provider != "openai":
        return f"{provider} message"
    roles = {"tool": "openai tool message", "function": "openai function message"}
    return roles.get(message["role"], "openai user")


def checked() -> tuple[int, list[str]]:
    """The number of parts that were checked, and the faults in them."""
    folder = install(PACKAGES)
    lines = "".join(json.dumps(each) + "\n" for each in requests())
    done = subprocess.run(
        [str(folder / "bin" / "python"), str(Path(__file__).parent / "drivers" / PACKAGES.driver)],
        cwd=folder,
        input=lines,
        env={},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    found = json.loads(done.stdout.splitlines()[-1].removeprefix("CHECKED "))
    return found["count"], found["faults"]


def main() -> int:
    count, faults = checked()
    sys.stdout.write("".join(f"{fault}\n" for fault in faults))
    sys.stdout.write(f"{count} parts of requests, {len(faults)} faults\n")
    return 1 if faults or not count else 0


if __name__ == "__main__":
    sys.exit(main())
