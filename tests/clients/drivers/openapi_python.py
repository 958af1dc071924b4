"""A client made by openapi-python-client, which mypy accepts."""

import asyncio
import importlib
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

from driving import URL, answers, of_blocks

document, made = Path("openapi.json"), Path("made")
with urllib.request.urlopen(URL + "/openapi.json") as response:
    document.write_bytes(response.read())
shutil.rmtree(made, ignore_errors=True)
options = ["--path", str(document), "--output-path", str(made), "--meta", "none"]
command = [sys.executable, "-m", "openapi_python_client", "generate", *options]
subprocess.run(command, check=True, stdout=sys.stderr)
# Its own template, client.py, does not pass mypy; what is made from the document does.
mypy = ["mypy", "--no-incremental", "--follow-imports=silent", "made/api", "made/models"]
subprocess.run([sys.executable, "-m", *mypy], check=True, stdout=2)

sys.path.insert(0, ".")
made_client = importlib.import_module("made").Client(
    base_url=URL, headers={"Accept": "application/json"}
)


async def call(tool: str, arguments: dict) -> dict:
    module = importlib.import_module(f"made.api.functions.functions_{tool}")
    body = next(value for name, value in vars(module).items() if name.endswith("Body"))
    answer = await module.asyncio_detailed(client=made_client, body=body.from_dict(arguments))
    assert answer.parsed is not None, f"status {answer.status_code} is not in the document"
    body = answer.parsed.to_dict()
    if answer.status_code != 200:
        return {"error": True, "text": body["error"], "code": answer.headers["x-error-code"]}
    return of_blocks(body["content"]) if "content" in body else {"data": body}


asyncio.run(answers(call))
