"""Deliveries of AMQP 0-10 that nobody accepts in time, and sessions that are too many to be kept.

The looks at deliveries are those of `harebell.front.common.delivery_ack_timeout`.
"""

from __future__ import annotations

import pytest

from harebell.front import limits
from harebell.front.common.delivery_ack_timeout import DeliveryAckTimeout
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from tests.conformance.sites import MemorySite
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.talk import EXPLICIT, Talk, begin

PRECONDITION_FAILED = 406
TIMEOUT_MS = 10_000


def _consuming(peer_talk: Talk, **how: int) -> None:
    peer_talk.do(c.QueueDeclare("late", exclusive=True))
    peer_talk.subscribe("late", accept_mode=EXPLICIT, **how)
    peer_talk.publish("", b"1", routing_key="late")
    peer_talk.sync()


def test_a_session_that_does_not_accept_in_time_ends(
    memory010: Connect010, memory: MemorySite
) -> None:
    (talk,) = begin(memory010())
    overdue = DeliveryAckTimeout(memory.registry, TIMEOUT_MS)
    _consuming(talk)
    assert talk.bodies() == [b"1"]
    for seconds in (0.0, 9.9):
        overdue.look(memory.now + seconds)
        talk.sync()
    overdue.look(memory.now + 10.0)
    memory.turn()
    talk.peer.expect_exception(PRECONDITION_FAILED, "delivery acknowledgement on channel 1")
    talk.peer.close()


def test_a_client_that_accepts_is_not_late_whatever_was_sent_since(
    memory010: Connect010, memory: MemorySite
) -> None:
    (talk,) = begin(memory010())
    overdue = DeliveryAckTimeout(memory.registry, TIMEOUT_MS)
    _consuming(talk)
    for out, seconds in enumerate(range(0, 40, 5)):
        overdue.look(memory.now + seconds)
        assert len(talk.bodies()) == 1
        talk.do(c.MessageAccept(((out, out),)))
        talk.publish("", b"next", routing_key="late")
        talk.sync()
    overdue.look(memory.now + 40)
    assert talk.bodies() == [b"next"]
    talk.leave()


@pytest.mark.parametrize("had", [False, True])
def test_beyond_so_many_sessions_none_gets_a_timeout(
    memory010: Connect010, memory: MemorySite, had: bool
) -> None:
    peer = memory010().open().attach(timeout=60 if had else None)
    memory.registry.kept_sessions.add("guest", limits.SESSIONS_KEPT)
    peer.send(k.SessionRequestTimeout(60))
    peer.expect(k.SessionTimeout, timeout=60 if had else 0)
    memory.registry.kept_sessions.remove("guest", limits.SESSIONS_KEPT)
    peer.close()
    # A session with a timeout outlives its connection.
    assert memory.registry.kept_sessions.used == had
