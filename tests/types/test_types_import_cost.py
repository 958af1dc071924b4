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


def test_a_class_that_refuses_its_arguments_needs_no_extra() -> None:
    probe = (
        "import sys\n"
        "sys.modules['jsonschema_rs'] = None\n"
        "from dataclasses import dataclass\n"
        "from pydantic import BaseModel\n"
        "from answerback.types.arguments import Arguments, Parameter\n"
        "from answerback.types.problems import InvalidArguments\n"
        "class Page(BaseModel):\n"
        "    number: int\n"
        "@dataclass\n"
        "class Even:\n"
        "    number: int\n"
        "    def __post_init__(self):\n"
        "        raise ValueError('not even')\n"
        'sent = b\'{"x":{"number":1}}\'\n'
        "for each in (Page, Even):\n"
        "    try:\n"
        "        Arguments([Parameter(name='x', annotation=each)]).decode(sent)\n"
        "    except InvalidArguments as error:\n"
        "        sys.exit(str(error) != 'x: not even')\n"
        "sys.exit(1)\n"
    )

    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0
