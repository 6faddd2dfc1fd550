"""The real broker without sockets: front, registry, model, store and users, driven by hand."""

from __future__ import annotations

import random
from collections.abc import Callable

from harebell.auth.password_hashes import SHA256
from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.base.ports import Store
from harebell.front.arrival import Arrival
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.front.convert import EDITOR, headers_of
from harebell.model.broker import Broker
from harebell.store.log.memory import MemoryStore
from tests.model.line import Line
from tests.passwords import QuickUsers


def entropy(seed: int) -> Callable[[int], bytes]:
    """Random octets that a seed decides."""
    return random.Random(seed).randbytes


class HandStore(MemoryStore):
    """A store in memory whose commits happen when a test says so.

    It stands for a disk of any slowness: what is durable is done when `begin` was called after it
    was changed, and `finish` after that.
    """

    def __init__(self, gauge: Gauge) -> None:
        super().__init__(gauge)
        self.commit.done = 0

    def begin(self) -> int:
        """Gather what has changed; returns the number of that commit."""
        self.commit.ticket += 1
        self.commit.urgent = False
        return self.commit.ticket - 1

    def finish(self, ticket: int) -> None:
        """The commit of that number is on disk."""
        self.commit.done = ticket


class MemoryBroker:
    """One broker in memory.

    Args:
        seed: decides generated names.
        high: octets of queued messages above which publishers are blocked; 0 for no limit.
        **settings: as for `Settings`.

    Attributes:
        log: every line it logged, with its level.
    """

    def __init__(self, seed: int = 0, high: int = 0, **settings: float) -> None:
        rng = entropy(seed)
        self.gauge = Gauge(high) if high else Gauge()
        self.clock = Clock()
        self.store = self.make_store()
        self.broker = Broker(self.store, self.gauge, headers_of, EDITOR, self.clock)
        self.registry = ConnectionRegistry(self.gauge)
        self.users = QuickUsers(rng, algorithm=SHA256)
        self.users.add("guest", "guest", loopback_only=True, vhosts=("/",))
        self.log: list[tuple[str, str]] = []
        self.settings = Settings(
            rng=rng,
            log=lambda level, text, *about: self.log.append((level, text)),
            **settings,  # type: ignore[arg-type]
        )
        self._ports = 0

    def make_store(self) -> Store:
        """Where its queues keep their messages."""
        return MemoryStore(self.gauge)

    @property
    def vhost(self):  # type: ignore[no-untyped-def]
        """The one vhost."""
        return self.broker.vhosts["/"]

    def accept(self, now: float = 0.0) -> Line:
        """A connection from a new peer."""
        self._ports += 1
        peer = Peer("127.0.0.1", self._ports)
        return Line(Arrival(self.broker, self.users, self.registry, self.settings, peer, now))

    def internal_errors(self) -> list[str]:
        """What the broker logged about its own faults."""
        return [
            text
            for _, text in self.log
            if "internal error" in text.lower() or "Error:" in text or " at /" in text
        ]
