"""How much one broker may have: vhosts, and queues and exchanges of all vhosts together.

RabbitMQ has them as limits of a cluster, in the same words. They hold for what is made new; what is
there already stays, and what comes back at a start is not counted against them.
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
    """The limits of one broker; None is no limit.

    Args:
        vhosts: most vhosts.
        queues: most queues of all vhosts.
        exchanges: most exchanges of all vhosts, those that every vhost begins with included.

    Attributes:
        every: the broker's vhosts by name, which the broker fills in.
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
        """Vhosts that there are."""
        return len(self.every)

    @property
    def queues(self) -> int:
        """Queues that there are."""
        return sum(len(vhost.queues) for vhost in self.every.values())

    @property
    def exchanges(self) -> int:
        """Exchanges that there are."""
        return sum(len(vhost.exchanges) for vhost in self.every.values())

    def check_vhost(self, name: str) -> None:
        """Refuse a new vhost that is one too many."""
        most = self._vhosts
        if most is not None and self.vhosts + self._elsewhere[0] >= most:
            raise precondition(f"cannot create vhost '{name}': vhost limit of {most} is reached")

    def check_queue(self, name: str) -> None:
        """Refuse a new queue that is one too many."""
        most = self._queues
        if most is not None and self.queues + self._elsewhere[1] >= most:
            raise precondition(
                f"cannot declare queue '{name}': queue limit in cluster ({most}) is reached"
            )

    def check_exchange(self, name: str, vhost: str) -> None:
        """Refuse a new exchange that is one too many."""
        most = self._exchanges
        if most is not None and self.exchanges + self._elsewhere[2] >= most:
            raise precondition(
                f"cannot declare exchange '{name}' in vhost '{vhost}': exchange limit of {most} "
                "is reached"
            )

    def left_for(self, copy: Ceilings) -> Ceilings:
        """The same room in a broker that has only some of this one's vhosts, queues, exchanges."""
        left = Ceilings(self._vhosts, self._queues, self._exchanges)
        left.every = copy.every
        left._elsewhere = (
            self.vhosts - copy.vhosts,
            self.queues - copy.queues,
            self.exchanges - copy.exchanges,
        )
        return left
