"""Random scripts of AMQP 1.0: an empty frame between two transfers changes nothing.

An empty frame has no effect, but the transfer behind it does not follow the one before. So the same
read is processed once with passages and once without.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import EMPTY, encode_frame
from harebell.wire.v1.sections import data_section, encode_message, value_section
from harebell.wire.v1.values import Symbol
from tests.unit.front.amqp_0_9_1.test_passage_scripts import EXCHANGES, QUEUES
from tests.unit.front.amqp_0_9_1.world import World
from tests.unit.front.amqp_1_0.peer import LinkPeer
from tests.unit.front.amqp_1_0.states import seen_of

MESSAGE_MAX = 4_000
SIZES = [*range(60), 99, 100, 101, 255, 256, 3_900]
ADDRESSES = ["/queues/q0", "/queues/q0", "/queues/q1", "/exchanges/e0/q0", "/exchanges/e1/1", None]
SECTIONS: list[tuple[Any, ...]] = [
    *[()] * 20,
    *[(c.Header(durable=True),)] * 10,
    (c.Header(priority=3), {Symbol("x-opt-a"): 1}, c.Properties(message_id="one")),
    (None, None, None, {"k": "a"}),
    (None, {Symbol("x-cc"): ["q2"]}),
    (c.Header(ttl=1_000),),
    (None, None, c.Properties(message_id="m" * 1_100)),
]
HOP = b"\0\x53\x71\xc1\x01\0"
"""Delivery annotations without any."""
Item = tuple[str, Any]


def script(random: Random) -> Iterator[Item]:
    """Performatives, and reads of many transfers, with other performatives between them."""
    for number in range(3):
        arguments = random.choice(QUEUES)
        durable = "x-queue-type" in arguments
        yield "method", m.QueueDeclare(f"q{number}", durable=durable, arguments=arguments)
    for number in range(2):
        yield "method", m.ExchangeDeclare(f"e{number}", type=random.choice(EXCHANGES))
        for key in ("q0", "1"):
            queue = f"q{random.randrange(3)}"
            yield "method", m.QueueBind(queue=queue, exchange=f"e{number}", routing_key=key)
    for handle in range(3):
        yield "sender", [attach(random, handle)]
    for handle in range(10, 10 + random.choice([0, 1, 1, 2])):
        yield from consumer(random, handle)
    if random.random() < 0.3:
        yield "method", m.BasicConsume("q0", "old", no_ack=True)
    for _ in range(4):
        yield "sender", [item for _ in range(4) for item in run(random)]
        if random.random() < 0.5:
            yield "taker", [credit(random, random.choice([10, 11]))]


def attach(random: Random, handle: int) -> c.Attach:
    """A link to publish on."""
    mode = random.choice([None, None, 1])
    target = c.Target(random.choice(ADDRESSES))
    about: dict[str, Any] = {"snd_settle_mode": mode, "initial_delivery_count": 0}
    return c.Attach(f"s{handle}", handle, False, source=c.Source(), target=target, **about)


def consumer(random: Random, handle: int) -> Iterator[Item]:
    """A link to consume on, and its credit."""
    source = c.Source(f"/queues/q{random.randrange(2)}")
    mode = random.choice([1, 1, 1, 0])
    largest = random.choice([None, None, None, 200])
    link = c.Attach(f"r{handle}", handle, True, mode, None, source, c.Target())
    link.max_message_size = largest
    yield "taker", [link]
    yield "taker", [credit(random, handle)]


def credit(random: Random, handle: int) -> c.Flow:
    window = random.choice([2_000, 2_000, 40])
    drain = random.random() < 0.1
    return c.Flow(None, window, 0, 2_000, handle, None, random.choice([5, 40, 3_000]), drain=drain)


def run(random: Random) -> Iterator[Any]:
    """Transfers of one link, and perhaps another performative behind them."""
    handle = random.choice([0, 0, 0, 1, 2])
    settled = random.random() < 0.8
    width = random.choice([0, 1, 4])
    for _ in range(random.choice([2, 20, 20])):
        size = random.choice(SIZES) if random.random() < 0.998 else MESSAGE_MAX
        body = random.randbytes(size)
        section = data_section(body) if random.random() < 0.98 else value_section(body)
        payload = encode_message(section, *random.choice(SECTIONS))
        if random.random() < 0.01:
            payload = HOP + payload
        if random.random() < 0.003:
            payload = payload[:-1]
        yield handle, settled, width, payload
    if random.random() < 0.3:
        others: list[Any] = [
            [c.Detach(handle, True), attach(random, handle)],
            [c.Flow(None, 2_000, 0, 2_000, handle, 0, None, echo=True)],
            [c.Flow(None, 2_000, 0, 2_000)],
        ]
        yield from random.choice(others)


def play(seed: int, between: bytes) -> list[Any]:
    """What peers got and what the broker counted, after each step."""
    random = Random(seed)
    world = World(message_max=MESSAGE_MAX, slow=seed % 3 == 0)
    declaring = world.peer()
    sender = LinkPeer(world).open()
    taker = sender if seed % 7 == 0 else LinkPeer(world).open(max_frame_size=512)
    peers = [sender, taker]

    def octets(item: Any) -> bytes:
        if not isinstance(item, tuple):
            return encode_frame(item.encoded(), 0)
        handle, settled, width, payload = item
        tag = sender.sent.to_bytes(4)[4 - width :]
        transfer = c.Transfer(handle, sender.sent, tag, 0, settled=settled)
        sender.sent += 1
        return encode_frame(transfer.encoded() + payload)

    seen: list[Any] = []
    for kind, values in script(random):
        if kind == "method":
            declaring.send(values)
        else:
            peer = sender if kind == "sender" else taker
            if 0 in peer.connection.channels:
                peer.connection.receive(between.join(octets(item) for item in values), world.now)
        world.turn()
        seen.append([declaring.frames(), *seen_of(world, peers)])
        if seed % 3 == 0:
            world.commit()
            seen.append([declaring.frames(), *seen_of(world, peers)])
    return seen


@pytest.mark.parametrize("part", range(4))
def test_an_empty_frame_between_two_transfers_changes_nothing(part: int) -> None:
    for seed in range(part * 50, part * 50 + 50):
        assert play(seed, b"") == play(seed, EMPTY), seed
