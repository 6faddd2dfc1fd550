"""Random scripts of 0-9-1, 0-8 and 0-9: a heartbeat between two publishes changes nothing.

A heartbeat is a frame without an effect, but the publish behind it does not follow the one before.
So the same read is processed once with passages and once without.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.frames import BODY, HEADER, HEARTBEAT, METHOD
from tests.unit.front.amqp_0_9_1.world import HEADER_0_9_1, OctetPeer, World, frame

VERSIONS: dict[str, tuple[bytes, Any]] = {
    "0-9-1": (HEADER_0_9_1, AMQP_0_9_1),
    "0-8": (b"AMQP\x01\x01\x08\x00", AMQP_0_8),
    "0-9": (b"AMQP\x01\x01\x00\x09", AMQP_0_9),
}
BEAT = frame(HEARTBEAT, 0, b"")
QUEUES: list[dict[str, Any]] = [
    *[{}] * 8,
    {"x-queue-type": "quorum"},
    {"x-queue-type": "stream"},
    {"x-max-priority": 3},
    {"x-max-length": 3},
    {"x-max-length": 2, "x-overflow": "reject-publish"},
    {"x-max-length": 1, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q1"},
    {"x-message-ttl": 0},
    {"x-last-value-key": "k"},
    {"x-group-key": "k"},
    {"x-message-deduplication": True},
    {"x-single-active-consumer": True},
]
EXCHANGES = ["direct", "fanout", "topic", "headers", "x-consistent-hash", "x-recent-history"]
SIZES = [*range(60), 99, 100, 101, 4088]
TOO_LARGE = 4089
PROPERTIES = [
    *[BasicProperties(), BasicProperties(delivery_mode=2)] * 12,
    BasicProperties(headers={"k": "a"}),
    BasicProperties(headers={"CC": ["q2"]}),
    BasicProperties(expiration="1000"),
]
Item = tuple[str, Any]


def script(random: Random) -> Iterator[Item]:
    """Methods, and reads of many publishes, with other methods between them."""
    for number in range(3):
        arguments = random.choice(QUEUES)
        durable = "x-queue-type" in arguments
        declare = m.QueueDeclare(f"q{number}", durable=durable, arguments=arguments)
        yield "method", (1, declare)
    for number in range(2):
        kind = random.choice(EXCHANGES)
        yield "method", (1, m.ExchangeDeclare(f"e{number}", type=kind))
        for key in ("q0", "1"):
            queue = f"q{random.randrange(3)}"
            yield "method", (1, m.QueueBind(queue=queue, exchange=f"e{number}", routing_key=key))
    for _ in range(random.choice([0, 1, 1, 2])):
        yield "method", (2, consume(random))
    for _ in range(3):
        yield "read", [item for _ in range(4) for item in run(random)]


def consume(random: Random) -> m.BasicConsume:
    tag, no_ack = f"t{random.randrange(9)}", random.random() < 0.8
    return m.BasicConsume(queue=f"q{random.randrange(2)}", consumer_tag=tag, no_ack=no_ack)


def run(random: Random) -> Iterator[Item]:
    """Publishes with one method, and perhaps another method behind them."""
    key, channel = random.choice(["q0", "q0", "q0", "q1", "1", "none"]), random.choice([1, 1, 3])
    method = m.BasicPublish(
        exchange=random.choice(["", "", "e0", "e1"]),
        routing_key=key,
        mandatory=random.random() < 0.3,
        immediate=random.random() < 0.02,
    )
    for _ in range(random.choice([2, 20, 20])):
        size = random.choice(SIZES) if random.random() < 0.998 else TOO_LARGE
        properties = random.choice(PROPERTIES)
        yield "publish", (channel, method, properties, random.randbytes(size))
    if random.random() < 0.3:
        others: list[m.Method] = [
            consume(random),
            m.BasicCancel(consumer_tag=f"t{random.randrange(9)}"),
            m.QueueDelete(queue=f"q{random.randrange(3)}"),
            m.QueuePurge(queue="q0"),
            m.BasicGet(queue="q1", no_ack=True),
            m.ChannelClose(),
        ]
        yield "method", (channel, random.choice(others))


def play(version: str, seed: int, between: bytes) -> list[Any]:
    """What peers got and what the broker counted, after each step."""
    header, spec = VERSIONS[version]
    random = Random(seed)
    world = World(message_max=4088, slow=seed % 3 == 0)

    def encoded(channel: int, method: m.Method) -> bytes:
        return frame(METHOD, channel, spec.encode(method))

    def octets(item: Item) -> bytes:
        kind, values = item
        if kind == "method":
            return encoded(*values)
        channel, method, properties, body = values
        start = b"\x00\x3c\x00\x00" + len(body).to_bytes(8)
        content = frame(HEADER, channel, start + encode_properties(properties))
        parts = [body[at : at + 4088] for at in range(0, len(body), 4088)]
        frames = [frame(BODY, channel, part) for part in parts]
        return encoded(channel, method) + content + b"".join(frames)

    peers = [logged_in(world, header, encoded) for _ in range(2)]
    if version == "0-9-1" and seed % 2:
        peers[0].give(encoded(1, m.ConfirmSelect()))
    seen: list[Any] = []
    for kind, values in script(random):
        if kind == "read":
            for number in {1, 3} - peers[0].connection.channels.keys():
                # An error has closed it.
                peers[0].give(
                    encoded(number, m.ChannelCloseOk()) + encoded(number, m.ChannelOpen())
                )
            peers[0].give(between.join(octets(item) for item in values))
        else:
            peers[values[0] // 2].give(encoded(*values))
        world.turn()
        seen.append([[each.frames() for each in peers], counted(world, peers)])
        if seed % 3 == 0:
            world.commit()
            seen.append([each.frames() for each in peers])
    return seen


def logged_in(world: World, header: bytes, encoded: Callable[[int, m.Method], bytes]) -> OctetPeer:
    """A peer of any version with three channels, whose frames have at most 4096 octets."""
    peer = world.connect()
    peer.give(header)
    peer.give(encoded(0, m.ConnectionStartOk({}, "PLAIN", b"\0guest\0guest", "en_US")))
    peer.give(encoded(0, m.ConnectionTuneOk(0, 4096, 0)) + encoded(0, m.ConnectionOpen("/")))
    for channel in (1, 2, 3):
        peer.give(encoded(channel, m.ChannelOpen()))
    peer.frames()
    return peer


def counted(world: World, peers: list[OctetPeer]) -> list[Any]:
    """All counters of queues, exchanges, channels and versions."""
    vhost = world.broker.vhosts["/"]
    queues = [
        (name, each.counters.values(), each.arrivals(), each.ready_count(), each.unacked)
        for name, each in vhost.queues.items()
    ]
    exchanges = [(each.name, each.published, each.routed) for each in vhost.exchanges.values()]
    channels = [
        (each.number, each.counters.values(), each.at_exchange.values(), each.next_tag)
        for peer in peers
        for each in peer.connection.channels.values()
    ]
    arrivals = [
        (each.sizes().counts, each.routed, each.wanting_confirm, each.byte_count)
        for each in (peer.connection.arrivals for peer in peers)
    ]
    return [queues, exchanges, channels, arrivals]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_heartbeat_between_two_publishes_changes_nothing(version: str) -> None:
    for seed in range(60):
        assert play(version, seed, b"") == play(version, seed, BEAT), seed
