"""An app whose only tool returns a given value."""

from __future__ import annotations

import asyncio
from typing import Any

from answerback import App


def app_returning(value: Any, annotation: Any = Any, **options: Any) -> App:
    """An app whose tool "tool" returns *value*; the options are the tool's, but for `contract`."""

    def tool() -> Any:
        return value

    tool.__annotations__["return"] = annotation
    app = App("test", contract=options.pop("contract", "standard"))
    app.add_tool(tool, **options)
    return app


def answer(value: Any, annotation: Any = Any, **options: Any) -> Any:
    """The reply of a tool that returns *value*."""
    return asyncio.run(app_returning(value, annotation, **options).call("tool"))
