"""The exchange class as a client sees it."""

from __future__ import annotations

from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World, publish


def test_exchanges_are_declared_bound_unbound_and_deleted() -> None:
    world = World()
    peer = world.peer()
    assert peer.ask(m.ExchangeDeclare("e", "topic")) == m.ExchangeDeclareOk()
    assert peer.ask(m.ExchangeDeclare("e", "", passive=True)) == m.ExchangeDeclareOk()
    peer.ask(m.QueueDeclare("q"))
    peer.ask(m.QueueBind("q", "e", "#"))
    assert peer.ask(m.ExchangeBind("e", "amq.topic", "a.*")) == m.ExchangeBindOk()
    peer.give(publish(b"x", "a.b", exchange="amq.topic"))
    assert peer.ask(m.QueueDeclare("q", passive=True)) == m.QueueDeclareOk("q", 1, 0)
    assert peer.ask(m.ExchangeUnbind("e", "amq.topic", "a.*")) == m.ExchangeUnbindOk()
    assert peer.ask(m.ExchangeDelete("e")) == m.ExchangeDeleteOk()
    assert peer.ask(m.ExchangeDelete("e")) == m.ExchangeDeleteOk()


def test_without_replies_the_work_is_done_all_the_same() -> None:
    world = World()
    peer = world.peer()
    peer.send(
        m.ExchangeDeclare("e", "fanout", nowait=True),
        m.ExchangeBind("e", "amq.fanout", nowait=True),
    )
    assert len(world.broker.vhosts["/"].exchange("amq.fanout").bindings) == 1
    peer.send(m.ExchangeUnbind("e", "amq.fanout", nowait=True), m.ExchangeDelete("e", nowait=True))
    assert peer.frames() == []
    assert "e" not in world.broker.vhosts["/"].exchanges


def test_the_default_exchange_cannot_be_bound() -> None:
    answer = World().peer().ask(m.ExchangeBind("amq.fanout", ""))
    assert isinstance(answer, m.ChannelClose)
    assert answer.reply_text == "ACCESS_REFUSED - operation not permitted on the default exchange"
