"""Broker-wide limits: vhosts, and queues and exchanges of all vhosts together.

They are the cluster limits of RabbitMQ, with the same error texts. They apply to new declarations;
what exists already stays, and restoring at a start is not limited. What the other owners of a
cluster have counts, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, Protocol

from harebell.model.resource import limit_reached

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


class Declared(NamedTuple):
    """How many of each kind there are."""

    vhosts: int = 0
    queues: int = 0
    exchanges: int = 0


def _nothing() -> Declared:
    """There is nothing elsewhere."""
    return Declared()


class Ceilings:
    """The broker-wide limits; None is no limit.

    Args:
        vhosts: most vhosts.
        queues: most queues of all vhosts.
        exchanges: most exchanges of all vhosts, the predeclared ones included.

    Attributes:
        every: the vhosts by name; filled in by the broker.
        elsewhere: returns what else counts; filled in by the broker.
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
        self.elsewhere: Callable[[], Declared] = _nothing

    def check_vhost(self, name: str) -> None:
        """Refuse a new vhost that exceeds the limit."""
        limit = self._vhosts
        if limit is not None and len(self.every) + self.elsewhere().vhosts >= limit:
            raise limit_reached(f"cannot create vhost '{name}': vhost limit of {limit} is reached")

    def check_queue(self, name: str) -> None:
        """Refuse a new queue that exceeds the limit."""
        limit = self._queues
        if limit is not None and self.counted().queues + self.elsewhere().queues >= limit:
            raise limit_reached(
                f"cannot declare queue '{name}': queue limit in cluster ({limit}) is reached"
            )

    def check_exchange(self, name: str, vhost: str) -> None:
        """Refuse a new exchange that exceeds the limit."""
        limit = self._exchanges
        if limit is not None and self.counted().exchanges + self.elsewhere().exchanges >= limit:
            raise limit_reached(
                f"cannot declare exchange '{name}' in vhost '{vhost}': exchange limit of {limit} "
                "is reached"
            )

    def counted(self) -> Declared:
        """Count the vhosts, queues and exchanges of this broker."""
        every = self.every.values()
        return Declared(
            len(every),
            sum(len(vhost.queues) for vhost in every),
            sum(len(vhost.exchanges) for vhost in every),
        )

    def copy(self) -> Ceilings:
        """Return the same limits, for another broker."""
        return Ceilings(self._vhosts, self._queues, self._exchanges)

    def beyond(self, copy: Ceilings) -> Declared:
        """Return what counts here and is not in a partial copy of this broker."""
        here, there, elsewhere = self.counted(), copy.counted(), self.elsewhere()
        return Declared(
            *[mine - its + others for mine, its, others in zip(here, there, elsewhere, strict=True)]
        )
