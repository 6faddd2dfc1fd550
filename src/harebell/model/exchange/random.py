"""Random exchange, `x-random`: each message goes to one binding, whichever (RabbitMQ's plugin).

Keys do not count. A destination that is bound under two keys has two chances.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.chooser import Chooser
from harebell.base.message import Message
from harebell.model.binding import Binding
from harebell.model.exchange.kind import Exchange

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.queue_context import QueueContext


class RandomExchange(Exchange):
    """The destinations in a row, to point at one."""

    KIND = "x-random"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.by_key = False
        self._row: list[Exchange | Queue] = []
        self._chooser = Chooser()

    def enter(self, context: QueueContext) -> None:
        """Share the vhost's chooser."""
        self._chooser = context.chooser

    def added(self, binding: Binding) -> None:
        """One more chance for the destination."""
        self._row.append(binding.destination)

    def removed(self, binding: Binding) -> None:
        """One chance less."""
        self._row.remove(binding.destination)

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """One destination, if there is any."""
        row = self._row
        if len(row) < 2:
            return row
        return [row[self._chooser.below(len(row))]]
