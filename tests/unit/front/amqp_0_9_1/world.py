"""A broker in memory and peers that talk to it in octets: the front without any socket.

world = World()
peer = world.peer()
peer.send(m.QueueDeclare("q"))
assert peer.methods() == [m.QueueDeclareOk("q", 0, 0)]
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, cast

from harebell.auth.password_hashes import SHA256
from harebell.base.clock import Clock
from harebell.base.gauge import Gauge
from harebell.front.arrival import Arrival
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_ports import Transport
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.front.common.peer import Peer
from harebell.front.common.settings import Settings
from harebell.front.convert import EDITOR, headers_of
from harebell.front.loading import PARTS
from harebell.model.broker import Broker
from harebell.store.log.memory import MemoryStore
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.frames import BODY, HEADER, METHOD
from tests.model.memory import HandStore
from tests.passwords import QuickUsers

# Else the first connection of a process with turns waits for the import of its version.
for _part in PARTS["0-9-1"]:
    import_module(_part)

HEADER_0_9_1 = b"AMQP\x00\x00\x09\x01"
EVERY_CAPABILITY = {
    "connection.blocked": True,
    "consumer_cancel_notify": True,
    "authentication_failure_close": True,
}


def frame(kind: int, channel: int, payload: bytes) -> bytes:
    return bytes((kind,)) + channel.to_bytes(2) + len(payload).to_bytes(4) + payload + b"\xce"


def method_frame(method: m.Method, channel: int = 1) -> bytes:
    return frame(METHOD, channel, AMQP_0_9_1.encode(method))


def publish(
    body: bytes,
    key: str = "q",
    *,
    exchange: str = "",
    channel: int = 1,
    mandatory: bool = False,
    properties: BasicProperties | None = None,
) -> bytes:
    raw = encode_properties(properties or BasicProperties())
    method = m.BasicPublish(exchange=exchange, routing_key=key, mandatory=mandatory)
    header = b"\x00\x3c\x00\x00" + len(body).to_bytes(8) + raw
    octets = method_frame(method, channel) + frame(HEADER, channel, header)
    for at in range(0, len(body), 131_064):
        octets += frame(BODY, channel, body[at : at + 131_064])
    return octets


class World:
    """A broker and what its connections share.

    Args:
        watermark: octets above which publishers are blocked.
        slow: commits happen only when `commit` is called.
        store: where everything is stored; in memory without it.
        **settings: settings of the front.
    """

    def __init__(
        self,
        watermark: int = 0,
        slow: bool = False,
        store: MemoryStore | None = None,
        **settings: Any,
    ) -> None:
        self.gauge = Gauge(watermark) if watermark else Gauge()
        self.store = store or (HandStore(self.gauge) if slow else MemoryStore(self.gauge))
        self.clock = Clock(1_700_000_000_000)
        self.broker = Broker(self.store, self.gauge, headers_of, EDITOR, self.clock)
        self.registry = ConnectionRegistry(self.gauge, self.broker.work)
        self.woken = 0
        self.users = QuickUsers(lambda size: bytes(size), algorithm=SHA256)
        self.users.add("guest", "guest", loopback_only=True, vhosts=("/",))
        self.log: list[tuple[str, str]] = []
        self._random = 0
        self.settings = Settings(
            rng=self.random,
            log=lambda level, text, *about: self.log.append((level, text)),
            **settings,
        )
        self.now = 1000.0

    def random(self, size: int) -> bytes:
        self._random += 1
        return self._random.to_bytes(size)

    def connect(self, address: str = "127.0.0.1") -> OctetPeer:
        """A peer that has not said anything yet."""
        return OctetPeer(self, address)

    def peer(self, capabilities: dict[str, bool] | None = None, heartbeat: int = 0) -> OctetPeer:
        """A peer with channel 1 open."""
        peer = self.connect()
        peer.log_in(EVERY_CAPABILITY if capabilities is None else capabilities, heartbeat)
        peer.send(m.ChannelOpen())
        assert peer.methods() == [m.ChannelOpenOk()]
        return peer

    def commit(self) -> None:
        """Everything that changed so far reaches the disk."""
        assert isinstance(self.store, HandStore)
        self.finish(self.store.begin())

    def finish(self, ticket: int) -> None:
        """The commit of that number reaches the disk."""
        assert isinstance(self.store, HandStore)
        self.store.finish(ticket)
        self.registry.committed()
        self.broker.committed()

    def limit(self, units: int) -> None:
        """Have turns, in which a user may spend so many units of work."""
        self.registry.turns.limit(units, self._wake)

    def _wake(self) -> None:
        self.woken += 1

    def next_turn(self) -> None:
        """What the shell does when it was woken."""
        self.woken -= 1
        self.registry.turns.next_turn()

    def turns(self) -> int:
        """Turn after turn until nothing waits; how many they were."""
        count = 0
        while self.woken:
            self.next_turn()
            count += 1
        return count

    def turn(self) -> None:
        """What the shell does at the end of a turn, without writing."""
        self.registry.publishers.relieve()
        for connection in self.registry.take_dirty():
            connection.relieved()
            connection.resume(self.now)


class OctetPeer:
    """One peer: octets in, decoded frames out."""

    def __init__(self, world: World, address: str) -> None:
        self.world = world
        self.connection: Any = Arrival(
            world.broker, world.users, world.registry, world.settings, Peer(address, 5), world.now
        )
        self.connection.transport = cast(Transport, self)

    def succeed(self, connection: BaseConnection) -> None:
        """The version is known."""
        self.connection = connection

    def unread(self) -> bool:
        """What is given is read at once."""
        return False

    def give(self, data: bytes) -> None:
        self.connection.receive(data, self.world.now)

    def send(self, *methods: m.Method, channel: int = 1) -> None:
        self.give(b"".join(method_frame(method, channel) for method in methods))

    def frames(self) -> list[tuple[int, int, bytes]]:
        """Everything written since the last time, taken apart."""
        data = self.connection.take_output(self.world.now)
        found = []
        while data:
            size = int.from_bytes(data[3:7])
            assert data[7 + size] == 0xCE
            found.append((data[0], int.from_bytes(data[1:3]), data[7 : 7 + size]))
            data = data[8 + size :]
        return found

    def methods(self) -> list[m.Method]:
        """The methods written since the last time, without channels and contents."""
        return [AMQP_0_9_1.decode(load) for kind, _, load in self.frames() if kind == METHOD]

    def bodies(self) -> list[bytes]:
        """The bodies written since the last time; none may be cut."""
        return [payload for kind, _, payload in self.frames() if kind == BODY]

    def log_in(
        self,
        capabilities: dict[str, bool],
        heartbeat: int = 0,
        vhost: str = "/",
        user: bytes = b"guest",
    ) -> None:
        self.give(HEADER_0_9_1)
        start_ok = m.ConnectionStartOk(
            {"capabilities": capabilities}, "PLAIN", b"\0%b\0%b" % (user, user), "en_US"
        )
        self.send(start_ok, channel=0)
        self.send(m.ConnectionTuneOk(0, 0, heartbeat), m.ConnectionOpen(vhost), channel=0)
        names = [type(method).__name__ for method in self.methods()]
        assert names == ["ConnectionStart", "ConnectionTune", "ConnectionOpenOk"]

    def ask(self, method: m.Method, channel: int = 1) -> m.Method:
        """Send a method; the one method that comes back."""
        self.send(method, channel=channel)
        (answer,) = self.methods()
        return answer


def ready(world: World, queue: str) -> int:
    """How many messages of a queue are ready."""
    return world.broker.vhosts["/"].queues[queue].ready_count()


def fill(world: World, peer: OctetPeer, queue: str, count: int) -> None:
    """Declare a queue, and publish messages with the numbers from 0 on."""
    peer.ask(m.QueueDeclare(queue=queue))
    peer.give(b"".join(publish(b"%d" % number, queue) for number in range(count)))
    assert ready(world, queue) == count
