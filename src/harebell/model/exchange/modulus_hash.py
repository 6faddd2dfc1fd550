"""Modulus hash exchange, `x-modulus-hash`: equal routing keys to the same of N destinations.

The destinations are sorted by name, and the hash of the routing key modulo their number is the
index of one. Binding keys are ignored. A new destination moves most keys; `x-consistent-hash`
avoids that.
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
    """The sorted destinations, each once."""

    KIND = "x-modulus-hash"
    CHOOSES = True

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._row: list[Exchange | Queue] = []

    def added(self, binding: Binding) -> None:
        """Sort the destinations again."""
        # As in RabbitMQ: the order of bindings may be another one after a restart.
        ordered = sorted(self.bindings.values(), key=by_name)
        self._row = list(dict.fromkeys(other.destination for other in ordered))

    def removed(self, binding: Binding) -> None:
        """Sort the remaining destinations."""
        self.added(binding)

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Return the destination at the hash of the routing key."""
        row = self._row
        return [row[hashed(message.routing_key) % len(row)]] if row else []
