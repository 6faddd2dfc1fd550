"""Bindings: from an exchange to a queue or to another exchange."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue


def frozen(value: Any) -> Hashable:
    """Return a hashable value that is equal only for equal table values (1 and true differ)."""
    if isinstance(value, Mapping):
        return ("table", tuple(sorted((key, frozen(item)) for key, item in value.items())))
    if isinstance(value, list | tuple):
        return ("array", tuple(frozen(item) for item in value))
    if isinstance(value, bool):
        return ("bool", value)
    if isinstance(value, int):
        return ("int", value)
    return (type(value).__name__, value)


class Binding:
    """A binding. Two with the same source, destination, key and arguments are equal.

    Args:
        source: the exchange.
        destination: the queue or exchange.
        routing_key: the binding key.
        arguments: those of the bind, which a headers exchange compares; empty for none.
    """

    __slots__ = ("arguments", "destination", "identity", "routing_key", "source")

    def __init__(
        self,
        source: Exchange,
        destination: Exchange | Queue,
        routing_key: str,
        arguments: Mapping[str, Any],
    ) -> None:
        self.source = source
        self.destination = destination
        self.routing_key = routing_key
        self.arguments = arguments
        self.identity: Hashable = (
            id(destination),
            routing_key,
            frozen(arguments) if arguments else None,
        )

    def __repr__(self) -> str:
        return f"Binding({self.source.name!r} -> {self.destination.name!r}, {self.routing_key!r})"
