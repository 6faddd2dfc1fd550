"""Bindings: from an exchange to a queue or to another exchange."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue


def frozen(value: Any) -> Hashable:
    """Return a hashable value that is equal only for equal table values.

    In Python 1 and True are equal, and equal keys of a dictionary; in a field table they differ.
    """
    if isinstance(value, Mapping):
        return ("table", tuple(sorted((key, frozen(item)) for key, item in value.items())))
    if isinstance(value, list | tuple):
        return ("array", tuple(frozen(item) for item in value))
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int):
        return ("int", value)
    return (type(value).__name__, value)


NO_ARGUMENTS: Mapping[str, Any] = {}
"""The arguments of all bindings without any: a dictionary for each would be 64 bytes."""


class Binding:
    """A binding. Two with the same source, destination, key and arguments are equal.

    A binding is its own key in the tables of its source and its destination, so that no second
    object is kept for each.

    Args:
        source: the exchange.
        destination: the queue or exchange.
        routing_key: the binding key.
        arguments: those of the bind, which a headers exchange compares; empty for none.

    Attributes:
        leads_to: what the type of the exchange returns for it: the destination, or the gate in
            front of it (`exchange.gate`).
    """

    __slots__ = ("_frozen", "arguments", "destination", "leads_to", "routing_key", "source")

    def __init__(
        self,
        source: Exchange,
        destination: Exchange | Queue,
        routing_key: str,
        arguments: Mapping[str, Any],
    ) -> None:
        self.source = source
        self.destination = destination
        self.leads_to: Any = destination
        self.routing_key = routing_key
        self.arguments = arguments or NO_ARGUMENTS
        self._frozen = frozen(arguments) if arguments else None

    def __eq__(self, other: object) -> bool:
        # By object and not by name: a queue that was deleted and declared again is another one.
        return (
            isinstance(other, Binding)
            and self.routing_key == other.routing_key
            and self.destination is other.destination
            and self.source is other.source
            and self._frozen == other._frozen
        )

    def __hash__(self) -> int:
        return hash((id(self.destination), self.routing_key, self._frozen))

    def __repr__(self) -> str:
        return f"Binding({self.source.name!r} -> {self.destination.name!r}, {self.routing_key!r})"
