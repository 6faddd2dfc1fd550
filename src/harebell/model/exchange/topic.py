"""Topic exchange: binding keys are patterns over the words of the routing key (AMQP 0-9-1 3.1.3.3).

Words are separated by dots; empty words count, but an empty key has no words. `*` matches one word,
`#` any number of words. `harebell.kernels.topic_matching` keeps and matches the patterns, with a
number for each destination.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Readonly
from harebell.base.message import Message
from harebell.kernels.topic_matching import TopicIndex
from harebell.model.binding import Binding
from harebell.model.exchange.kind import Exchange
from harebell.model.exchange.slots import Slots

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue


class TopicExchange(Exchange):
    """A topic exchange: patterns in an index.

    Attributes:
        index: the patterns, with a number for each destination.
        slots: the destinations of the numbers.
    """

    KIND = "topic"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.index: Readonly[TopicIndex] = TopicIndex()
        self.slots: Readonly[Slots] = Slots()

    def added(self, binding: Binding) -> None:
        """Add the pattern."""
        self.index.add(binding.routing_key, self.slots.use(binding.leads_to))

    def removed(self, binding: Binding) -> None:
        """Remove the pattern."""
        self.index.remove(binding.routing_key, self.slots.leave(binding.leads_to))

    def match(self, message: Message, headers: Mapping[str, Any]) -> C[Iterable[Exchange | Queue]]:
        """Return the destinations whose pattern matches the routing key."""
        index = self.index
        numbers: list[int] = index.match(message.routing_key)
        self.examined = index.cost
        if not numbers:
            return ()
        return self.slots.destinations_of(numbers)
