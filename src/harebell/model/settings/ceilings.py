"""Broker-wide limits: vhosts, and queues and exchanges of all vhosts together.

They are the cluster limits of RabbitMQ, with the same error texts. They apply to new declarations;
what exists already stays, and restoring at a start is not limited.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue


class CountedVHost(Protocol):
    """A vhost, as its queues and exchanges are counted."""

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The queues by name."""

    @property
    def exchanges(self) -> Mapping[str, Exchange]:
        """The exchanges by name."""


class Ceilings:
    """The broker-wide limits; None is no limit.

    Args:
        vhosts: most vhosts.
        queues: most queues of all vhosts.
        exchanges: most exchanges of all vhosts, the predeclared ones included.

    Attributes:
        every: the vhosts by name; filled in by the broker.
    """

    def __init__(
        self,
        vhosts: int | None = None,
        queues: int | None = None,
        exchanges: int | None = None,
    ) -> None:
        self._vhosts = vhosts
        self._queues = queues
        self._exchanges = exchanges
        self.every: Mapping[str, CountedVHost] = {}
        self._elsewhere = (0, 0, 0)

    @property
    def vhosts(self) -> int:
        """Return the number of vhosts."""
        return len(self.every)

    @property
    def queues(self) -> int:
        """Return the number of queues."""
        return sum(len(vhost.queues) for vhost in self.every.values())

    @property
    def exchanges(self) -> int:
        """Return the number of exchanges."""
        return sum(len(vhost.exchanges) for vhost in self.every.values())

    def check_vhost(self, name: str) -> None:
        """Refuse a new vhost that exceeds the limit."""
        limit = self._vhosts
        if limit is not None and self.vhosts + self._elsewhere[0] >= limit:
            raise precondition(f"cannot create vhost '{name}': vhost limit of {limit} is reached")

    def check_queue(self, name: str) -> None:
        """Refuse a new queue that exceeds the limit."""
        limit = self._queues
        if limit is not None and self.queues + self._elsewhere[1] >= limit:
            raise precondition(
                f"cannot declare queue '{name}': queue limit in cluster ({limit}) is reached"
            )

    def check_exchange(self, name: str, vhost: str) -> None:
        """Refuse a new exchange that exceeds the limit."""
        limit = self._exchanges
        if limit is not None and self.exchanges + self._elsewhere[2] >= limit:
            raise precondition(
                f"cannot declare exchange '{name}' in vhost '{vhost}': exchange limit of {limit} "
                "is reached"
            )

    def left_for(self, copy: Ceilings) -> Ceilings:
        """Return the limits for a partial copy of the broker; what it lacks still counts."""
        left = Ceilings(self._vhosts, self._queues, self._exchanges)
        left.every = copy.every
        left._elsewhere = (
            self.vhosts - copy.vhosts,
            self.queues - copy.queues,
            self.exchanges - copy.exchanges,
        )
        return left
