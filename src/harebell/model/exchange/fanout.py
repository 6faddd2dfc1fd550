"""Fanout exchange: a message is routed to all destinations (AMQP 0-9-1 3.1.3.2)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.model.binding import Binding
from harebell.model.exchange.kind import Exchange

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue


class FanoutExchange(Exchange):
    """A fanout exchange; it needs no index."""

    KIND = "fanout"

    def added(self, binding: Binding) -> None:
        """Do nothing: there is no index."""

    def removed(self, binding: Binding) -> None:
        """Do nothing: there is no index."""

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Return all destinations."""
        return [binding.leads_to for binding in self.bindings.values()]
