"""Direct exchange: the binding key equals the routing key (AMQP 0-9-1 3.1.3.1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.c_types import C, Readonly
from harebell.base.message import Message
from harebell.model.binding import Binding
from harebell.model.exchange.kind import Exchange

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue


class DirectExchange(Exchange):
    """Bindings by binding key.

    Attributes:
        keys: the bindings of each binding key.
    """

    KIND = "direct"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.keys: Readonly[dict[str, list[Binding]]] = {}

    def added(self, binding: Binding) -> None:
        """Add the binding under its key."""
        self.keys.setdefault(binding.routing_key, []).append(binding)

    def removed(self, binding: Binding) -> None:
        """Remove the binding from its key."""
        filed = self.keys[binding.routing_key]
        # By identity: comparing the keys of all bindings would take longer.
        del filed[next(place for place, other in enumerate(filed) if other is binding)]
        if not filed:
            del self.keys[binding.routing_key]

    def match(self, message: Message, headers: Mapping[str, Any]) -> C[Iterable[Exchange | Queue]]:
        """Return the destinations bound with the routing key of the message."""
        return [binding.leads_to for binding in self.keys.get(message.routing_key, ())]
