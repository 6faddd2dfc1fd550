"""The broker: vhosts, and what they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harebell.base.gauge import Gauge
from harebell.base.message import Message
from harebell.base.ports import Store
from harebell.model.vhost import VHost

DEFAULT_VHOST = "/"


class Broker:
    """Everything that outlives a connection.

    Args:
        store: opens the queues' logs.
        gauge: counts the memory that queued messages take.
        headers_of: decodes a message's headers.
    """

    def __init__(
        self,
        store: Store,
        gauge: Gauge,
        headers_of: Callable[[Message], Mapping[str, Any]],
    ) -> None:
        self.gauge = gauge
        self._store = store
        self._headers_of = headers_of
        self.vhosts: dict[str, VHost] = {}
        self.add_vhost(DEFAULT_VHOST)

    def add_vhost(self, name: str) -> VHost:
        """Make a vhost with its predeclared exchanges; the existing one when there is one."""
        vhost = self.vhosts.get(name)
        if vhost is None:
            vhost = VHost(name, self._store, self._headers_of)
            self.vhosts[name] = vhost
        return vhost

    def totals(self) -> dict[str, int]:
        """Counts over all vhosts: queues, consumers, messages ready and unacknowledged."""
        queues = [queue for vhost in self.vhosts.values() for queue in vhost.queues.values()]
        return {
            "queues": len(queues),
            "exchanges": sum(len(vhost.exchanges) for vhost in self.vhosts.values()),
            "consumers": sum(len(queue.consumers) for queue in queues),
            "messages_ready": sum(queue.ready_count() for queue in queues),
            "messages_unacknowledged": sum(queue.unacked for queue in queues),
        }
