"""Counters of a channel by exchange and by queue, and of a queue by exchange."""

from __future__ import annotations

import pytest

from harebell.base.counters import NAMES, Counters
from harebell.front.common import channel_details
from harebell.front.common.channel_details import ChannelDetails
from harebell.model.queue import contract
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish

PERSISTENT = BasicProperties(delivery_mode=2)


def _counted(table: dict[str, Counters]) -> dict[str, dict[str, int]]:
    """The counters that are not zero, by name."""
    return {
        key: {name: n for name, n in zip(NAMES, counters.values(), strict=True) if n}
        for key, counters in table.items()
    }


def _exchanges(peer: OctetPeer) -> dict[str, dict[str, int]]:
    channel = peer.connection.channels[1]
    if channel.confirms is not None:
        channel.confirms.count_details()
    return _counted(channel.details.exchanges)


def _queues(peer: OctetPeer) -> dict[str, dict[str, int]]:
    return _counted(peer.connection.channels[1].details.queues)


def _bound(world: World, **arguments: object) -> OctetPeer:
    """A peer with a durable queue `q`, which `amq.fanout` leads to."""
    peer = world.peer()
    peer.send(m.QueueDeclare("q", durable=True, arguments=arguments))
    peer.send(m.QueueBind(queue="q", exchange="amq.fanout"))
    peer.methods()
    return peer


def test_an_idle_channel_has_no_counters_by_name() -> None:
    assert World().peer().connection.channels[1].details is None


def test_publishes_count_for_the_exchange_they_went_to() -> None:
    peer = _bound(World())
    peer.give(publish(b"1") + publish(b"2", exchange="amq.fanout") + publish(b"3"))
    peer.give(publish(b"4", "none", mandatory=True) + publish(b"5", "x", exchange="amq.topic"))
    assert _exchanges(peer) == {
        "": {"publish": 3, "return_unroutable": 1},
        "amq.fanout": {"publish": 1},
        "amq.topic": {"publish": 1, "drop_unroutable": 1},
    }


def test_confirms_count_for_the_exchange_of_their_publish_when_they_are_sent() -> None:
    world = World(slow=True)
    peer = _bound(world)
    peer.send(m.ConfirmSelect())
    for number in range(4):
        exchange = ("", "amq.fanout")[number % 2]
        peer.give(publish(b"x", exchange=exchange, properties=PERSISTENT))
        if number == 2:
            world.commit()
    assert _exchanges(peer) == {
        "": {"publish": 2, "confirm": 2},
        "amq.fanout": {"publish": 2, "confirm": 1},
    }
    world.commit()
    assert _exchanges(peer)["amq.fanout"] == {"publish": 2, "confirm": 2}


def test_a_refused_publish_is_not_counted_as_confirmed() -> None:
    peer = _bound(World(), **{"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.send(m.ConfirmSelect())
    for exchange in ("", "amq.fanout", "", "amq.topic"):
        peer.give(publish(b"x", exchange=exchange))
    assert _exchanges(peer) == {
        "": {"publish": 2, "confirm": 1},
        "amq.fanout": {"publish": 1},
        "amq.topic": {"publish": 1, "drop_unroutable": 1, "confirm": 1},
    }


def test_publishes_before_confirm_select_are_never_confirmed() -> None:
    peer = _bound(World())
    peer.give(publish(b"1"))
    peer.ask(m.ConfirmSelect())
    peer.give(publish(b"2"))
    assert _exchanges(peer) == {"": {"publish": 2, "confirm": 1}}


def test_gets_and_their_acknowledgements_count_for_their_queue() -> None:
    peer = _bound(World())
    peer.give(publish(b"1") + publish(b"2") + publish(b"3"))
    peer.ask(m.BasicGet(queue="q", no_ack=True))
    peer.ask(m.BasicGet(queue="q"))
    peer.ask(m.BasicGet(queue="q"))
    peer.send(m.BasicAck(2, False))
    peer.send(m.BasicNack(3, False, True))
    peer.ask(m.BasicGet(queue="q"))
    peer.send(m.BasicAck(4, True))
    peer.ask(m.BasicGet(queue="q"))
    assert _queues(peer) == {
        "q": {"get": 3, "get_no_ack": 1, "get_empty": 1, "redeliver": 1, "ack": 2}
    }


def test_an_acknowledgement_after_basic_cancel_still_counts() -> None:
    peer = _bound(World())
    peer.ask(m.BasicConsume(queue="q", consumer_tag="c"))
    peer.give(publish(b"1"))
    peer.send(m.BasicCancel("c"))
    peer.send(m.BasicAck(1))
    peer.methods()
    assert _queues(peer) == {"q": {"deliver": 1, "ack": 1}}
    peer.ask(m.BasicConsume(queue="q", consumer_tag="d", no_ack=True))
    peer.give(publish(b"2"))
    assert _queues(peer) == {"q": {"deliver": 1, "deliver_no_ack": 1, "ack": 1}}


def test_a_queue_counts_where_its_messages_came_from() -> None:
    world = World()
    peer = _bound(world)
    queue = world.broker.vhosts["/"].queues["q"]
    assert queue.arrivals() == {}
    peer.give(publish(b"1") + publish(b"2"))
    assert (queue.arrivals(), queue.has_sources) == ({"": 2}, False)
    other = world.peer()
    for each in (peer, other, peer, peer):
        each.give(publish(b"3", exchange="amq.fanout"))
    other.give(publish(b"4"))
    assert (queue.arrivals(), queue.has_sources) == ({"": 3, "amq.fanout": 4}, True)
    assert sum(queue.arrivals().values()) == queue.counters.publish


def test_the_oldest_names_are_forgotten_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(channel_details, "_MAX", 3)
    monkeypatch.setattr(contract, "STATISTICS_QUEUE_SOURCES", 3)
    details = ChannelDetails()
    for name in "abcde":
        details.queue(name).deliver += 1
        details.exchange(name).publish += 1
    assert list(details.queues) == list(details.exchanges) == ["c", "d", "e"]
    world = World()
    peer = _bound(world)
    queue = world.broker.vhosts["/"].queues["q"]
    names = [f"x{number}" for number in range(8)]
    for name in names:
        peer.send(m.ExchangeDeclare(name, "fanout"))
        peer.send(m.QueueBind(queue="q", exchange=name))
        peer.give(publish(b"x", exchange=name))
    assert list(queue.arrivals()) == names[-4:]
