"""Delayed messages and the loss of power: what was confirmed is delivered, whenever it happens."""

from __future__ import annotations

from random import Random

import pytest

from harebell.base.message import Message
from harebell.model.exchange.delayed import DelayedExchange
from harebell.wire.v09.content import BasicProperties, encode_properties, parse_properties
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import PowerCut, SimDisk
from tests.sim.faults import CutNth
from tests.sim.machine import DiskBroker

BODIES = [b"%d" % number for number in range(6)]


def delayed(body: bytes, ms: int) -> Message:
    properties = BasicProperties(headers={"x-delay": ms}, delivery_mode=2)
    return Message("later", "", parse_properties(encode_properties(properties)), body)


def set_up(broker: DiskBroker) -> None:
    vhost = broker.vhost
    broker.clock.advance(1_700_000_000_000)
    vhost.declare_exchange(
        "later", "x-delayed-message", durable=True, arguments={"x-delayed-type": "fanout"}
    )
    queue = vhost.declare_queue("q", durable=True)
    vhost.bind("later", queue, "")
    exchange = held_by(broker)
    for number, body in enumerate(BODIES):
        (hold,) = vhost.router.route(exchange, delayed(body, 1))
        hold.publish(delayed(body, 1_000 * (1 + number // 2)))
    # Now they are confirmed.
    assert broker.commit()


def held_by(broker: DiskBroker) -> DelayedExchange:
    exchange = broker.vhost.exchanges["later"]
    assert isinstance(exchange, DelayedExchange)
    return exchange


def pass_ms(broker: DiskBroker, ms: int) -> None:
    broker.clock.advance(ms)
    broker.broker.tick()
    while broker.commit():
        pass


def delivered(broker: DiskBroker) -> list[bytes]:
    queue = broker.vhost.queues["q"]
    found = []
    while (got := queue.get()) is not None:
        found.append(got[0].body)
    return found


@pytest.mark.parametrize("cut", range(1, 21))
def test_a_delayed_message_is_never_lost_and_comes_twice_at_most(cut: int) -> None:
    disk = SimDisk(seed=cut)
    broker = DiskBroker(disk, SimDefinitions(disk))
    set_up(broker)
    disk.hook = CutNth(disk, cut)
    try:
        for _ in range(4):
            pass_ms(broker, 1_000)
    except PowerCut:
        image = disk.crash(Random(cut))
        again = DiskBroker(image, broker.definitions.crash(image, Random(cut)), 1)
        again.clock.advance(broker.clock.ms - again.clock.ms)
        # What was restored before the clock was set may be due long since.
        pass_ms(again, 5_000)
        found = delivered(again)
        assert set(found) == set(BODIES)
        assert len(found) <= 2 * len(BODIES)
        broker = again
    else:
        disk.hook = None
        assert delivered(broker) == BODIES
    assert held_by(broker).delayed == 0
    held = held_by(broker).held
    assert held is not None
    assert held._log.live() == 0


def test_waiting_messages_are_sent_in_order_without_a_power_loss() -> None:
    disk = SimDisk()
    broker = DiskBroker(disk, SimDefinitions(disk))
    set_up(broker)
    pass_ms(broker, 1_000)
    assert broker.vhost.queues["q"].ready_count() == 2
    pass_ms(broker, 5_000)
    assert delivered(broker) == BODIES
