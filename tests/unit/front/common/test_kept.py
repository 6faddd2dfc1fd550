"""Which connections are looked at for what they keep: those that do more than to beat."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.front.common.delivery_ack_timeout import DeliveryAckTimeout
from harebell.front.common.kept import KeptChecks
from harebell.front.limits import KEPT_CHECK_SECONDS
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import HEARTBEAT
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, frame, publish

_BEAT = frame(HEARTBEAT, 0, b"")


class Checked:
    """Peers whose connections are looked at, round after round."""

    def __init__(self) -> None:
        self.world = World()
        self.kept = KeptChecks(self.world.registry)
        self.peer = self.world.peer(heartbeat=10)

    def round(self) -> list[Any]:
        """Look at all; which connections are looked at again."""
        self.world.now += KEPT_CHECK_SECONDS
        self.kept.look(self.world.now)
        return list(self.world.registry.active)

    def consume(self) -> None:
        self.peer.send(m.QueueDeclare("q"), m.BasicConsume("q", "c"))
        self.peer.methods()


def test_a_connection_that_only_beats_is_not_looked_at_again() -> None:
    checked = Checked()
    assert checked.round() == []
    for _ in range(3):
        checked.peer.give(_BEAT)
        checked.world.now += 5
        checked.peer.connection.tick(checked.world.now)
        assert checked.peer.frames() == [(HEARTBEAT, 0, b"")]
    assert checked.round() == []


@pytest.mark.parametrize("data", [publish(b"x"), publish(b"x")[:8], _BEAT[:1], _BEAT + _BEAT])
def test_any_other_input_has_a_connection_looked_at_again(data: bytes) -> None:
    checked = Checked()
    assert checked.round() == []
    checked.peer.give(data)
    assert list(checked.world.registry.active) == [checked.peer.connection]


def test_a_delivery_has_a_connection_looked_at_until_it_is_acknowledged() -> None:
    checked = Checked()
    checked.consume()
    assert checked.round() == []
    other: OctetPeer = checked.world.peer()
    other.give(publish(b"x"))
    assert checked.peer.bodies() == [b"x"]
    assert checked.round() == checked.round() == [checked.peer.connection]
    checked.peer.send(m.BasicAck(1))
    assert checked.round() == []


def test_output_that_is_not_taken_has_a_connection_looked_at() -> None:
    checked = Checked()
    checked.consume()
    assert checked.round() == []
    checked.peer.give(publish(b"x"))
    assert checked.round() == [checked.peer.connection]


def test_a_delivery_to_a_connection_that_rested_is_overdue_in_time() -> None:
    checked = Checked()
    checked.consume()
    assert checked.round() == []
    overdue = DeliveryAckTimeout(checked.world.registry, 10_000)
    checked.world.peer().give(publish(b"x"))
    assert checked.peer.bodies() == [b"x"]
    overdue.look(2_000.0)
    checked.round()
    overdue.look(2_010.0)
    (close,) = checked.peer.methods()
    assert isinstance(close, m.ChannelClose)
    assert close.reply_code == 406


def test_the_end_of_a_connection_leaves_nothing_to_look_at() -> None:
    checked = Checked()
    checked.consume()
    checked.peer.connection.eof()
    assert list(checked.world.registry.active) == []
