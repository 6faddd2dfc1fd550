"""The queue class as a client sees it."""

from __future__ import annotations

from typing import Any

from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World, publish


def test_the_broker_makes_up_a_name_and_an_empty_one_means_it() -> None:
    peer = World().peer()
    declared: Any = peer.ask(m.QueueDeclare(""))
    assert declared.queue.startswith("amq.gen-")
    assert peer.ask(m.QueueDeclare(declared.queue, passive=True)) == declared
    assert peer.ask(m.QueueBind("", "amq.direct", "")) == m.QueueBindOk()
    peer.give(publish(b"x", declared.queue, exchange="amq.direct"))
    assert peer.ask(m.QueuePurge("")) == m.QueuePurgeOk(1)
    assert peer.ask(m.QueueUnbind("", "amq.direct", "")) == m.QueueUnbindOk()
    assert peer.ask(m.QueueDelete("")) == m.QueueDeleteOk(0)


def test_without_replies_the_work_is_done_all_the_same() -> None:
    world = World()
    peer = world.peer()
    peer.send(
        m.QueueDeclare("q", nowait=True),
        m.QueueBind("q", "amq.fanout", nowait=True),
        m.QueuePurge("q", nowait=True),
    )
    assert peer.frames() == []
    assert "q" in world.broker.vhosts["/"].queues
    peer.send(m.QueueDelete("q", nowait=True))
    assert peer.frames() == []
    assert world.broker.vhosts["/"].queues == {}


def test_a_declare_tells_messages_and_consumers() -> None:
    peer = World().peer()
    peer.ask(m.QueueDeclare("q"))
    peer.give(publish(b"1") + publish(b"2"))
    peer.ask(m.BasicQos(0, 1))
    peer.send(m.BasicConsume("q", "c"))
    peer.frames()
    assert peer.ask(m.QueueDeclare("q")) == m.QueueDeclareOk("q", 1, 1)


def test_arguments_without_effect_are_logged() -> None:
    world = World()
    world.peer().ask(m.QueueDeclare("q", arguments={"x-queue-mode": "lazy"}))
    assert ("warning", "queue 'q': no effect in this version: x-queue-mode") in world.log
