"""Local random exchange, `x-local-random`: route to one of its classic queues (RabbitMQ 4.0).

RabbitMQ chooses among the queues on the node of the publisher. Here there is one node, so all
queues are local; the restrictions on bindings are the same.
"""

from __future__ import annotations

from harebell.model.binding import Binding
from harebell.model.exchange.kind import Exchange
from harebell.model.exchange.random import RandomExchange
from harebell.model.resource import precondition

_CLASSIC = ("classic", "priority")


class LocalRandomExchange(RandomExchange):
    """A random exchange for classic queues, bound with the empty key."""

    KIND = "x-local-random"

    def check(self, binding: Binding) -> None:
        """Refuse binding keys, exchanges, and queues of other types."""
        destination = binding.destination
        if binding.routing_key:
            raise precondition(f"Non empty binding '{binding.routing_key}' key not permitted")
        # The texts are RabbitMQ's, which looks the destination up among queues only.
        if isinstance(destination, Exchange):
            raise precondition("Destination not found")
        if destination.kind not in _CLASSIC:
            raise precondition(
                f"Queue type rabbit_{destination.kind}_queue not valid for this exchange type"
            )
