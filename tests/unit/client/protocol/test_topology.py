"""What is recorded of a connection, and what is forgotten."""

from __future__ import annotations

from typing import Any

from harebell.client.protocol.channel_parts import CoreConsumer, Mode
from harebell.client.protocol.topology import Topology
from harebell.client.protocol.verbs import QueueInfo
from harebell.wire.v09 import methods as m


def declare(topology: Topology, name: str = "q", channel: int = 1, **options: Any) -> QueueInfo:
    info = QueueInfo(name, 0, 0)
    asked = "" if name.startswith("amq.gen") else name
    topology.observe(channel, m.QueueDeclare(asked, **options), info)
    return info


def consume(topology: Topology, queue: str, tag: str, channel: int = 1) -> None:
    consumer = CoreConsumer(tag, False, None, lambda error: None)
    topology.observe(channel, m.BasicConsume(queue, tag), consumer)


def test_declarations_are_recorded_in_their_order() -> None:
    topology = Topology()
    for name in ("b", "a"):
        topology.observe(1, m.ExchangeDeclare(name, "topic", durable=True), None)
        declare(topology, f"{name}-queue", durable=True)
    topology.observe(1, m.QueueBind("b-queue", "b", "k"), None)
    topology.observe(1, m.ExchangeBind("a", "b", "#"), None)
    topology.observe(1, m.QueueBind("b-queue", "b", "k"), None)
    assert list(topology.exchanges) == ["b", "a"]
    assert list(topology.queues) == ["b-queue", "a-queue"]
    assert topology.bindings == [m.QueueBind("b-queue", "b", "k"), m.ExchangeBind("a", "b", "#")]


def test_declarations_without_effect_are_not_recorded() -> None:
    topology = Topology()
    declare(topology, "q", passive=True)
    topology.observe(1, m.ExchangeDeclare("x", passive=True), None)
    topology.observe(1, m.QueuePurge("q"), 3)
    assert (topology.exchanges, topology.queues, topology.bindings) == ({}, {}, [])


def test_deleting_a_queue_forgets_its_bindings_and_no_others() -> None:
    topology = Topology()
    for queue in ("q", "r"):
        declare(topology, queue)
        topology.observe(1, m.QueueBind(queue, "x", "k"), None)
    topology.observe(1, m.QueueDelete("q"), 0)
    assert list(topology.queues) == ["r"]
    assert topology.bindings == [m.QueueBind("r", "x", "k")]


def test_deleting_an_exchange_forgets_its_bindings_on_both_ends() -> None:
    topology = Topology()
    topology.observe(1, m.ExchangeDeclare("x"), None)
    topology.observe(1, m.QueueBind("q", "x", "k"), None)
    topology.observe(1, m.ExchangeBind("x", "other", "k"), None)
    topology.observe(1, m.ExchangeBind("other", "x", "k"), None)
    topology.observe(1, m.QueueBind("q", "other", "k"), None)
    topology.observe(1, m.ExchangeDelete("x"), None)
    assert topology.exchanges == {}
    assert topology.bindings == [m.QueueBind("q", "other", "k")]


def test_unbinding_forgets_exactly_the_same_binding() -> None:
    topology = Topology()
    kept = [m.QueueBind("q", "x", "other"), m.QueueBind("q", "x", "k", arguments={"a": 1})]
    for binding in (m.QueueBind("q", "x", "k"), *kept):
        topology.observe(1, binding, None)
    topology.observe(1, m.QueueUnbind("q", "x", "k"), None)
    assert topology.bindings == kept
    topology.observe(1, m.ExchangeBind("d", "s", "k"), None)
    topology.observe(1, m.ExchangeUnbind("d", "s", "k"), None)
    assert topology.bindings == kept


def test_an_auto_delete_exchange_goes_with_its_last_binding() -> None:
    topology = Topology()
    topology.observe(1, m.ExchangeDeclare("x", auto_delete=True), None)
    topology.observe(1, m.QueueBind("q", "x", "1"), None)
    topology.observe(1, m.QueueBind("q", "x", "2"), None)
    topology.observe(1, m.QueueUnbind("q", "x", "1"), None)
    assert "x" in topology.exchanges
    topology.observe(1, m.QueueUnbind("q", "x", "2"), None)
    assert "x" not in topology.exchanges


def test_an_auto_delete_queue_goes_with_its_last_consumer_on_any_channel() -> None:
    topology = Topology()
    declare(topology, "q", auto_delete=True)
    declare(topology, "stays")
    consume(topology, "q", "one", channel=1)
    consume(topology, "q", "two", channel=2)
    consume(topology, "stays", "three", channel=2)
    topology.observe(1, m.BasicCancel("one"), None)
    assert "q" in topology.queues
    topology.forget_channel(2)
    assert list(topology.queues) == ["stays"]


def test_prefetch_mode_and_consumers_belong_to_their_channel() -> None:
    topology = Topology()
    topology.observe(1, m.BasicQos(0, 10, False), None)
    consume(topology, "q", "early", 1)
    topology.observe(1, m.BasicQos(0, 20, False), None)
    topology.observe(1, m.BasicQos(0, 99, True), None)
    consume(topology, "q", "late", 1)
    topology.observe(1, m.ConfirmSelect(), None)
    topology.observe(2, m.TxSelect(), None)
    one = topology.channel(1)
    prefetches = {tag: record.prefetch for tag, record in one.consumers.items()}
    assert prefetches == {"early": m.BasicQos(0, 10, False), "late": m.BasicQos(0, 20, False)}
    assert one.prefetch == m.BasicQos(0, 20, False)
    assert one.shared_prefetch == m.BasicQos(0, 99, True)
    assert (one.mode, topology.channel(2).mode) == (Mode.CONFIRM, Mode.TRANSACTION)
    topology.forget_channel(1)
    assert topology.channel(1).consumers == {}


def test_a_queue_that_gets_another_name_takes_everything_along() -> None:
    topology = Topology()
    info = declare(topology, "amq.gen-1", exclusive=True)
    topology.observe(1, m.QueueBind("amq.gen-1", "x", "k"), None)
    consume(topology, "amq.gen-1", "t")
    topology.rename("amq.gen-1", "amq.gen-2")
    topology.rename("amq.gen-2", "amq.gen-3")
    assert info.name == "amq.gen-3"
    assert topology.bindings == [m.QueueBind("amq.gen-3", "x", "k")]
    assert topology.channel(1).consumers["t"].method.queue == "amq.gen-3"
    assert topology.queues["amq.gen-3"].server_named
    assert topology.name_now("amq.gen-1") == topology.name_now("amq.gen-2") == "amq.gen-3"


def test_old_names_and_the_last_queue_of_a_channel_are_understood() -> None:
    topology = Topology()
    declare(topology, "amq.gen-1", channel=1)
    declare(topology, "other", channel=2)
    topology.rename("amq.gen-1", "amq.gen-2")
    assert topology.rewrite(1, m.QueuePurge("amq.gen-1")) == m.QueuePurge("amq.gen-2")
    assert topology.rewrite(1, m.BasicGet("")) == m.BasicGet("amq.gen-2")
    assert topology.rewrite(2, m.BasicGet("")) == m.BasicGet("other")
    assert topology.rewrite(1, m.QueueDeclare("")) == m.QueueDeclare("")
    untouched = m.ExchangeDelete("amq.gen-1")
    assert topology.rewrite(1, untouched) is untouched


def test_a_method_with_an_empty_queue_and_no_queue_declared_goes_out_as_it_is() -> None:
    method = m.BasicGet("")
    assert Topology().rewrite(1, method) == method
