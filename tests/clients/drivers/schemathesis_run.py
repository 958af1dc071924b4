"""schemathesis: requests made from the OpenAPI document, and their responses checked with it."""

import subprocess
import sys

from driving import URL

# `broken` fails on purpose, and each call of `too_slow` waits for its time-out.
left_out = ["--exclude-path", "/functions/broken"]
options = ["-n", "8", "--seed", "1", "--no-color", *left_out]
command = ["st", "run", f"{URL}/openapi.json", "--url", URL, *options]
sys.exit(subprocess.run(command, check=False).returncode)
