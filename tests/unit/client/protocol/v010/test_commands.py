"""The verbs of the client become commands of 0-10, or say that there is none."""

from __future__ import annotations

import pytest

from harebell.client.errors import UnsupportedByVersion
from harebell.client.protocol.v010.commands import plan
from harebell.wire.v010 import commands as c
from harebell.wire.v010.structs import QueueQueryResult
from harebell.wire.v09 import methods as m


def named() -> str:
    """A name for a queue without one."""
    return "made-up"


def test_a_queue_is_declared_and_counted() -> None:
    commands, reply = plan(m.QueueDeclare(queue="q", durable=True), named, 0)
    assert commands == [c.QueueDeclare(queue="q", durable=True), c.QueueQuery(queue="q")]
    found = QueueQueryResult(queue="q", message_count=3, subscriber_count=1)
    assert reply([found]) == m.QueueDeclareOk(queue="q", message_count=3, consumer_count=1)


def test_a_queue_without_a_name_gets_one_from_the_client() -> None:
    commands, reply = plan(m.QueueDeclare(), named, 0)
    assert commands[0] == c.QueueDeclare(queue="made-up")
    answer = reply([QueueQueryResult(queue="made-up")])
    assert isinstance(answer, m.QueueDeclareOk)
    assert answer.queue == "made-up"


def test_the_alternate_exchange_is_a_field_of_its_own() -> None:
    arguments = {"alternate-exchange": "other", "x-max-length": 5}
    (declare, _), _ = plan(m.QueueDeclare(queue="q", arguments=arguments), named, 0)
    assert isinstance(declare, c.QueueDeclare)
    assert declare.alternate_exchange == "other"
    assert declare.arguments == {"x-max-length": 5}


def test_options_that_0_10_lacks_are_named() -> None:
    with pytest.raises(UnsupportedByVersion, match=r"0-10 has no exchange\.bind"):
        plan(m.ExchangeBind(), named, 0)
    with pytest.raises(UnsupportedByVersion, match="0-10 has no internal exchanges"):
        plan(m.ExchangeDeclare(exchange="x", internal=True), named, 0)


def test_a_prefetch_is_a_window_and_without_acknowledgements_there_is_no_limit() -> None:
    def flow(window: int, *, no_ack: bool) -> tuple[int, int | None]:
        commands, reply = plan(m.BasicConsume("q", "t", no_ack=no_ack), named, window)
        assert reply([]) == m.BasicConsumeOk("t")
        mode, credit = commands[1], commands[2]
        assert isinstance(mode, c.MessageSetFlowMode)
        assert isinstance(credit, c.MessageFlow)
        return mode.flow_mode, credit.value

    assert flow(10, no_ack=False) == (1, 10)
    assert flow(0, no_ack=False) == (0, 0xFFFFFFFF)
    assert flow(10, no_ack=True) == (0, 0xFFFFFFFF)


def test_the_wishes_of_a_consumer_are_in_its_subscription() -> None:
    method = m.BasicConsume("q", "t", no_local=True, exclusive=True, arguments={"x-priority": 3})
    subscription = plan(method, named, 0).commands[0]
    assert subscription == c.MessageSubscribe(
        queue="q",
        destination="t",
        accept_mode=0,
        exclusive=True,
        arguments={"x-priority": 3, "no-local": True},
    )
    assert method.arguments == {"x-priority": 3}
    commands, reply = plan(m.BasicCancel("t"), named, 0)
    assert commands == [c.MessageCancel(destination="t")]
    assert reply([]) == m.BasicCancelOk("t")
