"""Return values with pydantic models in them: written by pydantic, checked by its own rules.

A model's JSON need not be JSON that the model takes (aliases, computed fields), so these
are checked as Python values, on the way down to the models.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from answerback.types import nodes
from answerback.types.building import make_record
from answerback.types.encoding import ENCODER
from answerback.types.faults import find_fault
from answerback.types.models import check_instance, write_instance
from answerback.types.nodes import Node
from answerback.types.output import Check
from answerback.types.problems import InvalidOutput, item, member
from answerback.types.syntax import DEEPEST, is_too_deep

Written = tuple[Any, Any]


class ModelCheck:
    """How values of a type with models in it are written and checked."""

    is_simple = True
