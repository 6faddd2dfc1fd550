"""Random exchange, `x-random`: route each message to one random binding (RabbitMQ plugin).

Keys are ignored. A destination that is bound with two keys is chosen twice as often.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.chooser import Chooser
from harebell.base.message import Message
from harebell.model.binding import Binding
from harebell.model.exchange.kind import Exchange, Rehearsal

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.queue_context import QueueContext


class RandomExchange(Exchange):
    """A random exchange: the destinations of its bindings in a list."""

    KIND = "x-random"
    CHOOSES = True

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.by_key = False
        self._row: list[Exchange | Queue] = []
        self._chooser = Chooser()

    def enter(self, context: QueueContext) -> None:
        """Take the chooser of the vhost."""
        self._chooser = context.chooser

    def added(self, binding: Binding) -> None:
        """Add the destination to the list."""
        self._row.append(binding.destination)

    def removed(self, binding: Binding) -> None:
        """Remove the destination from the list."""
        self._row.remove(binding.destination)

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Return one destination, if there is any."""
        row = self._row
        if len(row) < 2:
            return row
        return [row[self._chooser.below(len(row))]]

    def rehearse(self, message: Message, headers: Mapping[str, Any]) -> Rehearsal:
        """Return all destinations: one of them is chosen at random."""
        return Rehearsal(list(self._row), one_of=len(self._row) > 1)
