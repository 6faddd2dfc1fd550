"""A channel: acknowledging ranges, exchanges found once, and what ends with it."""

from __future__ import annotations

from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish


def consuming(world: World) -> OctetPeer:
    peer = world.peer()
    for name in ("p", "q"):
        peer.ask(m.QueueDeclare(name))
        peer.ask(m.BasicConsume(name, name))
    return peer


def test_acknowledging_up_to_a_tag_settles_on_every_queue() -> None:
    world = World()
    peer = consuming(world)
    for key in ("p", "q", "p", "q"):
        peer.give(publish(b"x", key))
    queues = world.broker.vhosts["/"].queues
    peer.send(m.BasicAck(3, True))
    assert (queues["p"].unacked, queues["q"].unacked) == (0, 1)
    peer.send(m.BasicAck(0, True))
    assert (queues["p"].unacked, queues["q"].unacked) == (0, 0)
    assert world.gauge.used == 0


def test_acknowledging_everything_when_there_is_nothing_is_fine() -> None:
    peer = World().peer()
    peer.send(m.BasicAck(0, True))
    assert peer.ask(m.BasicQos(0, 1)) == m.BasicQosOk()


def test_publishes_follow_an_exchange_that_is_made_anew() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    for _ in range(2):
        peer.ask(m.ExchangeDeclare("e", "fanout"))
        peer.ask(m.QueueBind("q", "e"))
        peer.give(publish(b"x", exchange="e"))
        peer.ask(m.ExchangeDelete("e"))
    assert world.broker.vhosts["/"].queues["q"].ready_count() == 2
    peer.give(publish(b"x", exchange="e"))
    (close,) = peer.methods()
    assert isinstance(close, m.ChannelClose)
    assert close.reply_text == "NOT_FOUND - no exchange 'e' in vhost '/'"
    assert (close.class_id, close.method_id) == (60, 40)


def test_an_internal_exchange_takes_no_publishes() -> None:
    peer = World().peer()
    peer.ask(m.ExchangeDeclare("e", "fanout", internal=True))
    peer.give(publish(b"x", exchange="e"))
    (close,) = peer.methods()
    assert isinstance(close, m.ChannelClose)
    assert close.reply_text.startswith("ACCESS_REFUSED - cannot publish to internal exchange 'e'")


def test_a_message_over_the_limit_closes_the_channel_in_one_piece_or_in_many() -> None:
    for size in (1001, 200_000):
        peer = World(message_max=1000).peer()
        peer.give(publish(b"x" * size))
        (close,) = peer.methods()
        assert isinstance(close, m.ChannelClose)
        assert close.reply_text == (
            f"PRECONDITION_FAILED - message size {size} is larger than configured max size 1000"
        )
        assert peer.connection.scanner.pending == 0


def test_closing_puts_back_what_was_out_and_frees_the_number() -> None:
    world = World()
    peer = consuming(world)
    peer.give(publish(b"1") + publish(b"2"))
    peer.frames()
    assert peer.ask(m.ChannelClose(200, "done")) == m.ChannelCloseOk()
    queue = world.broker.vhosts["/"].queues["q"]
    assert (queue.ready_count(), queue.unacked, len(queue.consumers)) == (2, 0, 0)
    assert peer.ask(m.ChannelOpen()) == m.ChannelOpenOk()
