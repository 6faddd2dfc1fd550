"""The class queue of AMQP 0-10."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v010 import commands as c
from harebell.wire.v010.structs import QueueQueryResult
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.talk import Talk, begin


@pytest.fixture
def talk(connect010: Connect010) -> Talk:
    """A session with the queue `q`, which is its own."""
    talk = begin(connect010())[0]
    talk.do(c.QueueDeclare("q", exclusive=True, auto_delete=True))
    return talk


def test_a_queue_is_what_it_was_declared_as(talk: Talk) -> None:
    talk.do(
        c.QueueDeclare(
            "made",
            "amq.fanout",
            durable=True,
            auto_delete=True,
            arguments={"qpid.max_count": 10, "x-message-ttl": 60000},
        ),
        c.QueueDeclare("made"),
    )
    talk.publish("", b"x", routing_key="made")
    found = talk.ask(c.QueueQuery("made"))
    assert found.arguments.pop("x-queue-type", "classic") == "classic"
    arguments = {"x-max-length": 10, "x-overflow": "reject-publish", "x-message-ttl": 60000}
    assert found == QueueQueryResult(
        "made", "amq.fanout", durable=True, auto_delete=True, arguments=arguments, message_count=1
    )
    talk.do(c.QueueDelete("made"))
    assert talk.ask(c.QueueQuery("made")) == QueueQueryResult()


def test_older_names_of_arguments_and_numbers_as_texts_are_understood(talk: Talk) -> None:
    given = {"x-qpid-priorities": 10, "qpid.max_count": "3", "qpid.policy_type": "ring"}
    talk.do(c.QueueDeclare("p", exclusive=True, auto_delete=True, arguments=given))
    for number, priority in enumerate((1, 9, 5, 0)):
        talk.publish("", b"%d" % number, routing_key="p", priority=priority)
    assert talk.ask(c.QueueQuery("p")).message_count == 3
    talk.subscribe("p")
    found = talk.deliveries()
    assert sorted((each.header[0].priority for each in found), reverse=True) == [
        each.header[0].priority for each in found
    ]


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (c.QueueDeclare(""), 542, "is empty"),
        (c.QueueDeclare("amq.mine"), 530, "'amq.'"),
        (c.QueueDeclare("x", "missing"), 404, "no exchange 'missing'"),
        (c.QueueDeclare("q", "amq.fanout"), 530, "another alternate exchange"),
        (c.QueueDeclare("x", passive=True), 404, "no queue 'x'"),
        (c.QueueDeclare("x", arguments={"odd": 1}), 540, "unknown argument 'odd'"),
        (c.QueueDeclare("x", arguments={"qpid.policy_type": "odd"}), 542, "ring"),
        (c.QueueDeclare("x", arguments={"x-max-length": -1}), 406, "x-max-length"),
        (c.QueueDelete(""), 542, "is empty"),
        (c.QueueDelete("x"), 404, "no queue 'x'"),
        (c.QueueDelete("q", if_empty=True), 406, "not empty"),
        (c.QueueDelete("q", if_unused=True), 406, "in use"),
        (c.QueuePurge(""), 542, "is empty"),
        (c.QueuePurge("x"), 404, "no queue 'x'"),
    ],
)
def test_what_cannot_be_asked_for_ends_the_session(
    talk: Talk, command: Any, code: int, text: str
) -> None:
    talk.do(c.MessageSubscribe("q", "t"))
    talk.publish("", b"x", routing_key="q")
    talk.fails(command, code, text)


def test_an_exclusive_queue_is_its_sessions_alone(connect010: Connect010) -> None:
    one, two, three = begin(connect010(), 3)
    one.do(c.QueueDeclare("mine", exclusive=True), c.QueueDeclare("mine", exclusive=True))
    assert one.ask(c.QueueQuery("mine")).exclusive
    two.fails(c.QueueDeclare("mine"), 405, "locked queue 'mine'")
    three.do(c.QueueDeclare("mine", passive=True))
    three.fails(c.QueueDeclare("mine", passive=True, exclusive=True), 405, "'mine'")
    one.do(c.QueueDelete("mine"))


def test_it_is_anybodys_when_the_session_is_over_or_gone_with_it(connect010: Connect010) -> None:
    one = begin(connect010())[0]
    one.do(
        c.QueueDeclare("left", durable=True, exclusive=True),
        c.QueueDeclare("gone", exclusive=True, auto_delete=True),
    )
    one.subscribe("gone")
    one.do(c.MessageCancel("t"))
    assert one.ask(c.QueueQuery("gone")).queue == "gone", "its last subscription is not its end"
    one.leave()
    other = begin(connect010())[0]
    assert other.ask(c.QueueQuery("gone")) == QueueQueryResult()
    assert not other.ask(c.QueueQuery("left")).exclusive
    other.do(c.QueueDeclare("left", exclusive=True), c.QueueDelete("left"))


def test_a_queue_that_others_use_cannot_be_had_alone(connect010: Connect010) -> None:
    one, other = (begin(connect010())[0] for _ in range(2))
    one.do(c.QueueDeclare("shared"), c.MessageSubscribe("shared", "t"))
    other.fails(c.QueueDeclare("shared", exclusive=True), 405, "used by others")
    one.do(c.MessageCancel("t"), c.QueueDelete("shared"))


def test_a_subscription_to_a_queue_that_the_session_deleted_can_be_cancelled(talk: Talk) -> None:
    talk.do(c.QueueDeclare("a"), c.MessageSubscribe("a", "t"), c.QueueDelete("a"))
    talk.do(c.MessageFlow("t", 0, 1), c.MessageCancel("t"), c.ExecutionSync())


def test_an_auto_delete_queue_goes_with_its_last_subscription(talk: Talk) -> None:
    talk.do(c.QueueDeclare("a", auto_delete=True), c.MessageSubscribe("a", "t"))
    talk.do(c.MessageSubscribe("a", "b", acquire_mode=1), c.MessageCancel("t"))
    assert talk.ask(c.QueueQuery("a")).queue == "a"
    talk.do(c.MessageCancel("b"))
    assert talk.ask(c.QueueQuery("a")) == QueueQueryResult()


def test_a_purge_leaves_what_is_out(talk: Talk) -> None:
    for body in (b"out", b"in"):
        talk.publish("", body, routing_key="q")
    talk.subscribe("q", credit=1)
    talk.do(c.QueuePurge("q"), c.MessageCancel("t"), c.MessageRelease(((0, 0),)))
    assert talk.bodies() == [b"out"]
    assert talk.ask(c.QueueQuery("q")).message_count == 1


def test_what_a_queue_leaves_goes_to_its_alternate_exchange(connect010: Connect010) -> None:
    one = begin(connect010())[0]
    one.do(
        c.QueueDeclare("letters", exclusive=True, auto_delete=True),
        c.ExchangeBind("letters", "amq.fanout", ""),
    )
    other = begin(connect010())[0]
    other.do(c.QueueDeclare("q2", "amq.fanout", exclusive=True, auto_delete=True))
    for body in (b"1", b"2", b"3"):
        other.publish("", body, routing_key="q2")
    other.subscribe("q2", credit=1)
    assert other.bodies() == [b"1"]
    other.leave()
    one.subscribe("letters")
    assert one.bodies() == [b"1", b"2", b"3"], "what was out is among them"


def test_what_a_connection_publishes_may_be_kept_from_itself(connect010: Connect010) -> None:
    one, other = (begin(connect010())[0] for _ in range(2))
    one.do(c.QueueDeclare("n", exclusive=True, auto_delete=True, arguments={"no-local": "true"}))
    one.subscribe("n")
    one.publish("", b"own", routing_key="n")
    other.publish("", b"other", routing_key="n")
    one.sync()
    assert one.bodies() == [b"other"]
