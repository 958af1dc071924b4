"""Functions that take all arguments as one object, or as the keywords of `**kwargs`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Unpack, get_args, get_origin

import msgspec

from ..types.arguments import Parameter
from ..types.problems import is_plain_dict
from ..types.whole_arguments import check_whole, unpacked


class Whole(msgspec.Struct, frozen=True):
    """All arguments of a function as one object."""

    parameter: str | None
    """The parameter that receives them; None if they are the keywords of `**kwargs`."""
    annotation: object
    reserved: frozenset[str] = frozenset()
    """The names that no keyword can have, because the function has such a parameter."""

    @property
    def is_free(self) -> bool:
        """Whether the type says nothing about the arguments."""
        return is_plain_dict(self.annotation)


def keyword_parameters(
    hint: object, name: str, named: frozenset[str], owner: str
) -> list[Parameter]:
    """Return a parameter for each key of `**kwargs: Unpack[TypedDict]`.

    Raises TypeError for another *hint*, and for a key among the other *named* parameters.
    """
    if get_origin(hint) is not Unpack:
        raise TypeError(
            f"{owner} takes **{name} without saying which arguments there are; name each "
            f"argument, write **{name}: Unpack[T] with a TypedDict T, give input_schema=, or take "
            "args: Annotated[dict, AllArguments] for any arguments"
        )
    found = unpacked(get_args(hint)[0], f"**{name} of {owner}")
    _refuse_taken((each.target for each in found), named, f"**{name}", owner)
    return found


def _refuse_taken(names: Iterable[str], named: frozenset[str], where: str, owner: str) -> None:
    if taken := sorted(named.intersection(names)):
        raise TypeError(
            f"{where} of {owner} has {taken[0]!r}, and the function has a parameter of that name; "
            "rename the parameter"
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
    properties = (schema or {}).get("properties", ())
    if whole.parameter is None:
        taken = "**kwargs"
        others = [each.target for each in parameters if each.required]
    else:
        taken = repr(whole.parameter)
        others = [each.target for each in parameters]
        check_whole(whole.annotation, f"parameter {taken} of {owner}")
    if others:
        also = ", ".join(map(repr, others))
        raise TypeError(
            f"{owner} takes all arguments in {taken}, and also {also}; read an argument from "
            f"{taken}, and mark a value of the server's with Depends, as in "
            f"{others[0]}: Annotated[T, Depends(fn)]"
        )
    _refuse_taken(properties, whole.reserved, "input_schema", owner)
    return []
