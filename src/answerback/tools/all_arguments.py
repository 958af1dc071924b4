"""Functions that take all arguments as one object, or as the keywords of `**kwargs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack, get_args, get_origin

from ..types.arguments import Parameter
from ..types.whole_arguments import check_whole, unpacked
from .signature import Whole


def add_keywords(
    hint: Any,
    name: str,
    parameters: list[Parameter],
    wholes: list[Whole],
    owner: str,
    schema: Mapping[str, Any] | None,
) -> None:
    """Add the arguments of `**kwargs` to *parameters*, or to *wholes* if a schema defines them.

    Raises TypeError if neither a TypedDict nor a schema says which arguments there are.
    """
    if get_origin(hint) is Unpack:
        parameters += unpacked(get_args(hint)[0], f"**{name} of {owner}")
    elif schema is not None:
        wholes.append(Whole(None, dict))
    else:
        raise TypeError(
            f"{owner} takes **{name} without saying which arguments there are; name each "
            f"argument, write **{name}: Unpack[T] with a TypedDict T, give input_schema=, or take "
            "args: Annotated[dict, AllArguments] for any arguments"
        )


def checked_whole(
    wholes: list[Whole],
    parameters: list[Parameter],
    owner: str,
    schema: Mapping[str, Any] | None,
) -> list[Parameter]:
    """Return no parameters, because one object has all arguments; raise TypeError for others.

    A parameter with a default that the schema does not have keeps its default: a function that is
    made in a loop often has one.
    """
    if len(wholes) > 1:
        raise TypeError(f"{owner} takes all arguments twice; once is enough")
    whole = wholes[0]
    names = set((schema or {}).get("properties", ()))
    others = [
        each.target
        for each in parameters
        if each.required or each.name in names or whole.parameter is not None
    ]
    taken = "**kwargs" if whole.parameter is None else repr(whole.parameter)
    if others:
        raise TypeError(
            f"{owner} takes all arguments in {taken}, and also {', '.join(map(repr, others))}; read "
            f"an argument from {taken}, and mark a value of the server's with Depends, as in "
            f"{others[0]}: Annotated[T, Depends(fn)]"
        )
    if whole.parameter is not None:
        check_whole(whole.annotation, f"parameter {whole.parameter!r} of {owner}")
    return []
