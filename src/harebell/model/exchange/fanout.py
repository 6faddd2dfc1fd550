"""Fanout exchange: a message goes to everything that is bound (AMQP 0-9-1 3.1.3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.model.binding import Binding
from harebell.model.exchange.kind import Exchange

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue


class FanoutExchange(Exchange):
    """No shape of its own: the bindings themselves are the answer."""

    KIND = "fanout"

    def added(self, binding: Binding) -> None:
        """Nothing to keep beside the binding."""

    def removed(self, binding: Binding) -> None:
        """Nothing to forget beside the binding."""

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Every destination."""
        return [binding.destination for binding in self.bindings.values()]
