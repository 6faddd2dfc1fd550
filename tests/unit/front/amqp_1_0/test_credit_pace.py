"""The credit of a publisher: held while its consumers catch up, and for no others."""

from __future__ import annotations

import pytest

from harebell.front.limits import CREDIT_PACE_LINKS, CREDIT_PACE_MS, LINK_CREDIT, PACE_DELIVERIES
from harebell.wire.v09 import methods as m
from harebell.wire.v1 import composites as c
from tests.unit.front.amqp_0_9_1.world import World
from tests.unit.front.amqp_1_0.peer import LinkPeer

MOST = LINK_CREDIT // 2 + 1
"""Deliveries after which a link is due for credit."""


class Pair:
    """A publisher of a queue that waits for credit, and a consumer that took what it had."""

    def __init__(self, taken: int = PACE_DELIVERIES) -> None:
        self.world = World()
        self.world.peer().ask(m.QueueDeclare(queue="q"))
        self.publisher = LinkPeer(self.world).open()
        self.consumer = LinkPeer(self.world).open()
        self.publisher.attach("/queue/q")
        self.consumer.receive("/queue/q", credit=1)
        # The first look at a publisher: how much its consumer took of late is not known.
        self.publisher.publish_all([b"x"] * 2)
        self.take(taken)
        self.answers = self.publisher.publish_all([b"x"] * MOST)

    def take(self, count: int) -> None:
        """Let the consumer take so many more."""
        had = self.consumer.session.links[1].delivery_count
        self.consumer.ask(c.Flow(0, 2048, 0, 2048, 1, had, count))

    def credit(self) -> list[int]:
        """Return the credit that the publisher was given since it was looked at last."""
        return credit_in(self.publisher.taken())


def credit_in(performatives: list[object]) -> list[int]:
    """Return the credit of the flows of a link."""
    flows = [each for each in performatives if isinstance(each, c.Flow)]
    return [each.link_credit for each in flows if each.handle is not None]


def test_a_link_gets_credit_again_when_its_consumers_have_caught_up() -> None:
    pair = Pair()
    assert not credit_in(pair.answers)
    pair.take(MOST - PACE_DELIVERIES)
    pair.world.registry.held_credit.look()
    assert not pair.credit(), "some are left"
    pair.take(LINK_CREDIT)
    pair.world.registry.held_credit.look()
    assert pair.credit() == [LINK_CREDIT]


def test_a_link_gets_credit_after_some_milliseconds_whatever_its_consumers_do() -> None:
    pair = Pair()
    timers = pair.world.broker.timers
    assert timers.due == timers.clock.steady + CREDIT_PACE_MS
    pair.world.registry.held_credit.release()
    assert pair.credit() == [LINK_CREDIT]


@pytest.mark.parametrize("taken", [0, PACE_DELIVERIES - 1])
def test_slow_consumers_hold_no_credit(taken: int) -> None:
    assert credit_in(Pair(taken).answers) == [LINK_CREDIT]


def test_a_link_that_was_detached_meanwhile_gets_no_credit() -> None:
    pair = Pair()
    pair.publisher.ask(c.Detach(0, True))
    pair.world.registry.held_credit.release()
    assert not pair.credit()


def test_a_connection_that_was_lost_meanwhile_gets_no_credit() -> None:
    pair = Pair()
    pair.publisher.connection.eof()
    pair.world.registry.held_credit.release()
    assert not pair.publisher.connection.take_output(pair.world.now)


def test_no_more_links_wait_than_there_is_room_for() -> None:
    pair = Pair()
    held = pair.world.registry.held_credit
    held.links *= CREDIT_PACE_LINKS
    _, queue = held.links[0]
    assert not held.hold(held.links[0][0], queue, pair.world.broker.timers)
