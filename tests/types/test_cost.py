"""What importing costs, and what it must not bring along."""

import subprocess
import sys

import pytest

HEAVY = ["asyncio", "logging", "difflib", "pydantic", "attrs", "attr", "jsonschema", "dataclasses"]


@pytest.mark.parametrize("heavy", HEAVY)
def test_a_call_loads_nothing_heavy(heavy: str) -> None:
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
