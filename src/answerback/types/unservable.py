"""What may be asked of an annotation at registration, quickly."""

from typing import Any

from . import nodes
from .annotation_reader import read_type
from .nodes import Node


def check(annotation: Any, where: str) -> None:
    """Raise UnservableType if no JSON can stand for *annotation*; *where* names it."""
    try:
        read_type(annotation, where)
    except NameError:
        # A name that is only known later; the first call will tell.
        return


def is_object(annotation: Any) -> bool:
    """Whether every value of the type is a JSON object."""
    return is_object_node(read_type(annotation))


def is_object_node(node: Node) -> bool:
    """Whether every value of *node* is a JSON object."""
    match node:
        case nodes.Noted(inner=inner):
            return is_object_node(inner)
        case nodes.Union(members=members):
            return all(map(is_object_node, members))
        case nodes.Model():
            from .pydantic_types import is_object_model

            return is_object_model(node)
        case nodes.Record(array=array):
            return not array
    return isinstance(node, nodes.Mapping)
