"""Modules that a call of a simple tool must not import."""

import subprocess
import sys

import pytest

HEAVY = ["asyncio", "logging", "difflib", "pydantic", "attrs", "attr", "jsonschema", "dataclasses"]


@pytest.mark.parametrize("heavy", HEAVY)
def test_a_call_of_a_simple_tool_imports_nothing_heavy(heavy: str) -> None:
    probe = (
        "import sys\n"
        "from answerback.types.arguments import Arguments, Parameter\n"
        "from answerback.types.output import Output\n"
        "from answerback.types.annotation_reader import check_type\n"
        "check_type(int, 'x')\n"
        "Arguments([Parameter(name='x', annotation=int)]).decode(b'{\"x\":1}')\n"
        "Output(int).encode(1)\n"
        f"sys.exit({heavy!r} in sys.modules or 'answerback.types.json_schema' in sys.modules)\n"
    )

    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
