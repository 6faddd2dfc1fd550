"""Local random exchange, `x-local-random`: one of the classic queues bound to it (RabbitMQ 4.0).

RabbitMQ picks among the queues of the node that the publisher is connected to. There is one node
here, so all of them are local; what may be bound is the same.
"""

from __future__ import annotations

from harebell.model.binding import Binding
from harebell.model.exchange.kind import Exchange
from harebell.model.exchange.random import RandomExchange
from harebell.model.resource import precondition

_CLASSIC = ("classic", "priority")


class LocalRandomExchange(RandomExchange):
    """A random exchange that only classic queues can be bound to, under the empty key."""

    KIND = "x-local-random"

    def check(self, binding: Binding) -> None:
        """Refuse keys, exchanges, and queues of other types."""
        destination = binding.destination
        if binding.routing_key:
            raise precondition(f"Non empty binding '{binding.routing_key}' key not permitted")
        if isinstance(destination, Exchange):
            raise precondition("Destination not found")
        if destination.kind not in _CLASSIC:
            raise precondition(
                f"Queue type rabbit_{destination.kind}_queue not valid for this exchange type"
            )
