"""Modulus hash exchange, `x-modulus-hash`: equal routing keys go to the same of N destinations.

The destinations stand in the order of their names, and the hash of the routing key modulo their
number points at one. Binding keys do not count, and one more destination moves most keys; where
that matters `x-consistent-hash` is the kind to use.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.hashing import hashed
from harebell.base.message import Message
from harebell.model.binding import Binding
from harebell.model.exchange.kind import Exchange, by_name

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue


class ModulusHashExchange(Exchange):
    """The destinations in order, each once."""

    KIND = "x-modulus-hash"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._row: list[Exchange | Queue] = []

    def added(self, binding: Binding) -> None:
        """Put the destinations in order anew."""
        ordered = sorted(self.bindings.values(), key=by_name)
        self._row = list(dict.fromkeys(other.destination for other in ordered))

    def removed(self, binding: Binding) -> None:
        """Put those that are left in order."""
        self.added(binding)

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """The destination that the key's hash points at."""
        row = self._row
        return [row[hashed(message.routing_key) % len(row)]] if row else []
