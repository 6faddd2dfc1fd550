"""What a selector compares with constants, for an index over selectors."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from harebell.model.filter.columns import Node

_EXACT = 1 << 53
"""Below it each whole number is a double of its own, so equal numbers are equal in Python."""
_LEAVES = ("header", "property")


class Equality(NamedTuple):
    """A selector can be true only for messages with one of these values.

    Args:
        node: the header or property, see `harebell.kernels.conditions`.
        values: as `key_of` returns them.
    """

    node: Node
    values: frozenset[Hashable]


def equality_of(tree: Node) -> Equality | None:
    """Return what the tree of a selector compares; None if it compares nothing with constants."""
    for node in tree[1:] if tree[0] == "and" else (tree,):
        for leaf, others in _compared(node):
            values = [_constant(other) for other in others]
            if leaf[0] in _LEAVES and None not in values:
                return Equality(leaf, frozenset(values))
    return None


def _compared(node: Node) -> Iterator[tuple[Node, tuple[Node, ...]]]:
    if node[0] == "=":
        yield node[1], (node[2],)
        yield node[2], (node[1],)
    elif node[0] == "in":
        yield node[2], node[3:]


def _constant(node: Node) -> Hashable | None:
    """Return the key of a constant; None if there is none, or if it may equal other keys."""
    if node[0] != "value":
        return None
    value = node[1]
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return None
    elif isinstance(value, int | float) and not abs(value) < _EXACT:
        return None
    return key_of(value)


def key_of(value: Any) -> Hashable | None:
    """Return the key of a value: equal for equal values; None for a value that has none."""
    if isinstance(value, bool):
        return ("truth", value)
    return value if isinstance(value, str | int | float) else None
