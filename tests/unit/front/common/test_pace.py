"""The pace of publishers: they wait for consumers that take much, and for no others."""

from __future__ import annotations

from harebell.front.common.pace import Pace
from harebell.front.limits import PACE_DELIVERIES
from harebell.model.limits import AHEAD_MESSAGES
from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World, publish
from tests.unit.model.things import queue


def test_only_consumers_that_took_much_since_the_last_look_count() -> None:
    pace, where, other = Pace(), queue("q"), queue("other")
    where.counters.deliver = 10**6
    assert not pace.outruns(where), "how much of it is of late is not known at the first look"
    where.counters.deliver += PACE_DELIVERIES - 1
    assert not pace.outruns(where)
    where.counters.deliver += 1
    where.counters.deliver_no_ack += PACE_DELIVERIES - 1
    assert pace.outruns(where)
    assert not pace.outruns(where)
    where.counters.deliver_no_ack += PACE_DELIVERIES
    assert not pace.outruns(other), "the count of another queue says nothing"
    assert not pace.outruns(where)


def test_a_publisher_is_ahead_while_a_backlog_grows_and_the_consumer_goes_on() -> None:
    world = World()
    publisher, consumer = world.peer(), world.peer()
    publisher.ask(m.QueueDeclare(queue="q"))
    piece = b"".join(publish(b"x") for _ in range(64))
    backlog = b"".join(publish(b"x") for _ in range(AHEAD_MESSAGES + 64))
    publisher.give(backlog)
    publisher.give(piece)
    assert not publisher.connection.outruns, "without a consumer it waits for nobody"
    consumer.send(m.BasicQos(prefetch_count=PACE_DELIVERIES))
    consumer.send(m.BasicConsume(queue="q", consumer_tag="c"))
    publisher.give(piece)
    assert not publisher.connection.outruns
    publisher.give(piece)
    assert not publisher.connection.outruns, "the consumer stands still"
    consumer.send(m.BasicAck(delivery_tag=0, multiple=True))
    assert not consumer.connection.outruns
    publisher.give(piece)
    assert publisher.connection.outruns
    publisher.give(piece)
    assert not publisher.connection.outruns
    while world.broker.vhosts["/"].queues["q"].ready_count():
        consumer.send(m.BasicAck(delivery_tag=0, multiple=True))
    publisher.give(piece)
    assert not publisher.connection.outruns, "there is no backlog"
