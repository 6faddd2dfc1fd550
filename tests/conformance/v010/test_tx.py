"""The class tx of AMQP 0-10."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.model import limits
from harebell.wire.v010 import commands as c
from harebell.wire.v010.structs import DeliveryProperties
from tests.conformance.arriving import unique
from tests.conformance.sites import MemorySite
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.talk import NONE, NOT_ACQUIRED, Talk, begin


@pytest.fixture
def talk(connect010: Connect010) -> Talk:
    """A transactional session with the queue `q`, which is its own."""
    talk = begin(connect010())[0]
    talk.do(c.QueueDeclare("q", exclusive=True, auto_delete=True))
    talk.publish("", b"before", routing_key="q")
    talk.do(c.TxSelect())
    return talk


def count(talk: Talk) -> int:
    found: int = talk.ask(c.QueueQuery("q")).message_count
    return found


def test_nothing_is_there_before_the_commit(talk: Talk) -> None:
    talk.publish("", b"x", routing_key="q")
    assert count(talk) == 1
    talk.do(c.TxCommit())
    assert count(talk) == 2


def test_a_rollback_forgets_what_was_transferred(talk: Talk) -> None:
    talk.publish("", b"x", routing_key="q")
    talk.do(c.TxRollback(), c.TxCommit())
    assert count(talk) == 1


def test_after_a_rollback_accepted_messages_are_still_held(talk: Talk) -> None:
    talk.subscribe("q")
    talk.do(c.MessageAccept(((0, 0),)), c.TxRollback())
    assert count(talk) == 0
    talk.do(c.MessageCancel("t"), c.MessageRelease(((0, 0),)))
    assert count(talk) == 1
    talk.subscribe("q", "again")
    assert len(talk.deliveries()) == 2
    # The results of the queries have numbers, too; whatever came is accepted.
    talk.do(c.MessageAccept(((0, 19),)), c.TxCommit(), c.MessageCancel("again"))
    assert count(talk) == 0


def test_uncommitted_acknowledgements_come_back_when_the_session_ends(
    connect010: Connect010,
) -> None:
    one = begin(connect010())[0]
    one.do(c.QueueDeclare("kept"), c.TxSelect())
    one.publish("", b"x", routing_key="kept")
    one.do(c.TxCommit())
    one.subscribe("kept")
    one.do(c.MessageAccept(((0, 5),)))
    one.publish("", b"y", routing_key="kept")
    one.leave()
    other = begin(connect010())[0]
    other.subscribe("kept")
    assert other.bodies() == [b"x"]
    other.do(c.QueueDelete("kept"))


def test_an_accepted_message_can_be_released_before_the_rollback(talk: Talk) -> None:
    talk.subscribe("q")
    talk.do(c.MessageAccept(((0, 0),)), c.MessageCancel("t"), c.MessageRelease(((0, 0),), True))
    assert count(talk) == 1
    talk.do(c.TxRollback(), c.TxCommit())
    assert count(talk) == 1


def test_releasing_and_rejecting_do_not_wait_for_the_commit(talk: Talk) -> None:
    talk.publish("", b"x", routing_key="q")
    talk.do(c.TxCommit())
    talk.subscribe("q")
    talk.do(c.MessageCancel("t"), c.MessageReject(((0, 0),)), c.MessageRelease(((1, 1),)))
    assert count(talk) == 1


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (c.TxSelect(), 409, "transactional already"),
    ],
)
def test_a_command_that_a_transaction_excludes_ends_the_session(
    talk: Talk, command: Any, code: int, text: str
) -> None:
    talk.do(c.MessageSubscribe("q", "browser", accept_mode=NONE, acquire_mode=NOT_ACQUIRED))
    talk.fails(command, code, text)


@pytest.mark.parametrize("command", [c.TxCommit(), c.TxRollback()])
def test_there_is_nothing_to_end_before_a_select(connect010: Connect010, command: Any) -> None:
    begin(connect010())[0].fails(command, 409, "not transactional")


def test_a_subscription_that_accepts_nothing_excludes_a_transaction(
    connect010: Connect010,
) -> None:
    talk = begin(connect010())[0]
    talk.do(c.QueueDeclare("q", exclusive=True), c.MessageSubscribe("q", "t", accept_mode=NONE))
    talk.fails(c.TxSelect(), 530, "'t' accepts nothing")
    talk.peer.attach(unique("again"))
    Talk(talk.peer).do(c.QueueDelete("q"))


def test_a_commit_that_a_queue_would_refuse_does_nothing(connect010: Connect010) -> None:
    talk = begin(connect010())[0]
    small = c.QueueDeclare("narrow", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    talk.do(small, c.TxSelect())
    for body in (b"1", b"2"):
        talk.publish("", body, routing_key="narrow")
    talk.fails(c.TxCommit(), 506, "is full")
    talk.peer.attach(unique("again"))
    after = Talk(talk.peer)
    assert after.ask(c.QueueQuery("narrow")).message_count == 0
    after.do(c.QueueDelete("narrow"))


@pytest.mark.parametrize("end", [c.TxCommit(), c.TxRollback(), None])
def test_messages_that_wait_for_the_commit_count_as_memory(
    memory010: Connect010, memory: MemorySite, end: Any
) -> None:
    talk = begin(memory010())[0]
    talk.do(c.QueueDeclare("q", exclusive=True, auto_delete=True), c.TxSelect())
    talk.publish("", b"x" * 5_000, routing_key="q")
    assert memory.gauge.uncommitted > 5_000
    assert memory.gauge.used == memory.gauge.uncommitted
    if end is None:
        talk.peer.done()
    else:
        talk.do(end)
    assert memory.gauge.uncommitted == 0
    assert (memory.gauge.used > 0) == isinstance(end, c.TxCommit)


def test_a_transaction_that_transfers_too_much_ends_the_session(
    memory010: Connect010, memory: MemorySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TRANSACTION_BYTES", 10_000)
    talk = begin(memory010())[0]
    talk.do(c.QueueDeclare("q"), c.TxSelect())
    talk.publish("", b"x" * 6_000, routing_key="q")
    where = DeliveryProperties(routing_key="q")
    talk.peer.transfer("", b"x" * 6_000, where, channel=talk.channel, sync=True)
    text = "the transaction publishes more than 10000 bytes"
    talk.peer.expect_exception(406, text, talk.sent, talk.channel)
    assert memory.gauge.used == 0
