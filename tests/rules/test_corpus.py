"""What is sent in the wild is found, and what only looks bad is left alone."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from answerback import validate
