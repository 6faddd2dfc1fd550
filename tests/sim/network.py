"""A simulated network and clock: every delay, split and fault comes from one seed."""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from harebell.front.limits import OUTPUT_STOP_BYTES
from tests.model.memory import MemoryBroker

if TYPE_CHECKING:
    from harebell.front.common.base_connection import BaseConnection as Connection

TICK = 0.5
WRITE_HIGH = 65_536
WRITE_LOW = 16_384
WINDOW = 32_768
SOCKET_BUFFER = 65_536


class Client(Protocol):
    """What a link tells its client."""

    def arrived(self, data: bytes) -> None:
        """Octets were read."""

    def lost(self) -> None:
        """The connection is over."""


class World:
    """Clock, events, and the broker among them.

    Args:
        seed: decides everything.
        high: the broker's memory watermark in octets.
    """

    def __init__(self, seed: int, high: int = 0) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.now = 1000.0
        self.high = high
        self.broker = self.start_broker()
        self.links: list[Link] = []
        self.accepted = 0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._count = 0
        self._digest = hashlib.sha256()
        self.steps = 0
        self.max_output = 0
        self.later(TICK, self._tick)

    def start_broker(self) -> MemoryBroker:
        """A broker to begin with."""
        return MemoryBroker(seed=self.seed, high=self.high)

    # --- time -----------------------------------------------------------------------------------

    def later(self, delay: float, what: Callable[[], None]) -> None:
        """Do something after a while."""
        self._count += 1
        heapq.heappush(self._events, (self.now + delay, self._count, what))

    def run(self, until: float) -> None:
        """Let events happen until this time."""
        while self._events and self._events[0][0] <= until:
            at, _, what = heapq.heappop(self._events)
            self.now = max(self.now, at)
            self.steps += 1
            what()
            self.flush()
        self.now = max(self.now, until)

    def jump(self, seconds: float) -> None:
        """The clock leaps, as after a suspended machine."""
        self.note("jump", 0, b"%f" % seconds)
        self.now += seconds

    def note(self, what: str, number: int, data: bytes) -> None:
        """Add to the trace."""
        self._digest.update(f"{self.now:.6f} {what} {number} {len(data)} ".encode() + data)

    @property
    def trace(self) -> str:
        """A fingerprint of everything that happened, to the octet."""
        return self._digest.hexdigest()

    # --- what the shell does --------------------------------------------------------------------

    def flush(self) -> None:
        """Write the connections that have output, as the shell does once per turn."""
        registry = self.broker.registry
        for _ in range(1000):
            registry.publishers.relieve()
            dirty = registry.take_dirty()
            if not dirty:
                return
            for connection in dirty:
                link: Any = connection.transport
                if link is not None:
                    link.flush()
        raise AssertionError("connections keep each other busy for ever")

    def _tick(self) -> None:
        for link in list(self.links):
            link.connection.tick(self.now)
        self.later(TICK, self._tick)

    def connect(self, client: Client) -> Link:
        """A new connection to the broker."""
        self.accepted += 1
        link = Link(self, client, self.broker.accept(self.now), self.accepted)
        self.links.append(link)
        return link


class Link:
    """One TCP connection: ordered in both directions, in pieces, late, and mortal."""

    def __init__(self, world: World, client: Client, connection: Any, number: int) -> None:
        self.world = world
        self.client: Client | None = client
        self.connection = connection
        self.number = number
        self.slowness = 0.0
        self.silent = False
        self.dead = False
        self._up = self._down = world.now
        self._in_flight = 0
        self._to_write = bytearray()
        self._unread: list[bytes] = []
        self.waiting = 0
        connection.transport = self

    def succeed(self, connection: Connection) -> None:
        """The broker has read the protocol header: another object goes on."""
        self.connection = connection

    # --- client to broker -----------------------------------------------------------------------

    @property
    def full(self) -> bool:
        """Whether the client's socket takes no more."""
        return self.waiting > SOCKET_BUFFER

    def send(self, data: bytes) -> None:
        """The client writes."""
        rng = self.world.rng
        while data and not self.dead and not self.silent:
            size = rng.choice((1, 5, 8, 50, 700, 4000, 100_000))
            part, data = data[:size], data[size:]
            self.waiting += len(part)
            self._up = max(self._up, self.world.now + rng.expovariate(200))
            self.world.later(self._up - self.world.now, lambda part=part: self._arrive(part))  # type: ignore[misc]

    def _arrive(self, part: bytes) -> None:
        if self.dead:
            return
        self._unread.append(part)
        self._read()

    def unread(self) -> bool:
        """Whether octets lie here that the broker has not read."""
        return bool(self._unread)

    def _reading(self) -> bool:
        c = self.connection
        stuck = c.congested and len(self._to_write) > OUTPUT_STOP_BYTES
        return c.closing or not (c.paused or c.held_back or stuck)

    def _read(self) -> None:
        while self._unread and self._reading() and not self.dead:
            part = self._unread.pop(0)
            self.waiting -= len(part)
            self.world.note("up", self.number, part)
            self.connection.receive(part, self.world.now)
            self.world.max_output = max(self.world.max_output, self.connection.out.size)
            self.world.flush()

    # --- broker to client -----------------------------------------------------------------------

    def flush(self) -> None:
        """The broker's shell writes."""
        connection = self.connection
        data = connection.take_output(self.world.now)
        self.world.max_output = max(self.world.max_output, len(data))
        if not self.dead:
            self._to_write += data
            self._pump()
        if connection.closing:
            self.world.later(0.0, self._end_when_written)
            return
        if not connection.congested:
            connection.relieved()
            connection.resume(self.world.now)
        if self._unread:
            self.world.later(0.0, self._read)

    def _pump(self) -> None:
        rng = self.world.rng
        while self._to_write and self._in_flight < WINDOW and not self.dead:
            size = rng.choice((1, 7, 100, 5000, 30_000))
            part = bytes(self._to_write[:size])
            del self._to_write[:size]
            self._in_flight += len(part)
            delay = rng.expovariate(200) + self.slowness
            self._down = max(self._down, self.world.now + delay)
            self.world.later(self._down - self.world.now, lambda part=part: self._reach(part))  # type: ignore[misc]
        connection = self.connection
        if len(self._to_write) > WRITE_HIGH:
            connection.congested = True
        elif connection.congested and len(self._to_write) <= WRITE_LOW:
            connection.congested = False
            connection.touch()

    def _reach(self, part: bytes) -> None:
        if self.dead or self.client is None or self.silent:
            return
        self._in_flight -= len(part)
        self.world.note("down", self.number, part)
        self.client.arrived(part)
        self._pump()

    # --- ends -----------------------------------------------------------------------------------

    def _end_when_written(self) -> None:
        if self.dead:
            return
        if (self._to_write or self._in_flight) and not self.silent:
            self.world.later(0.01, self._end_when_written)
            return
        self.cut()

    def vanish(self) -> None:
        """The peer is gone and nobody says so: nothing passes any more."""
        self.silent = True
        if self.client is not None:
            client, self.client = self.client, None
            client.lost()

    def die(self) -> None:
        """The broker is gone from one moment to the next, with all that it had read and written."""
        self.dead = True
        self.world.note("die", self.number, b"")
        self.connection.transport = None
        self.world.links.remove(self)
        if self.client is not None:
            client, self.client = self.client, None
            client.lost()

    def cut(self) -> None:
        """The connection breaks: of what is under way, only some octets still arrive."""
        if self.dead:
            return
        if self._unread and self._reading():
            part = self._unread[0]
            part = part[: self.world.rng.randint(0, len(part))]
            self.world.note("last", self.number, part)
            self.connection.receive(part, self.world.now)
            self.connection.take_output(self.world.now)
        self.dead = True
        self.world.note("cut", self.number, b"")
        self.connection.eof()
        self.connection.transport = None
        self.world.links.remove(self)
        self._to_write.clear()
        if self.client is not None:
            client, self.client = self.client, None
            client.lost()
