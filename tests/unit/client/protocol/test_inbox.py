"""Deliveries that wait to be taken."""

from __future__ import annotations

import pytest

from harebell.base.message import Properties
from harebell.client.errors import AMQPError, ConnectionLost, NotFound
from harebell.client.protocol.inbox import Inbox

EMPTY = Properties(b"\0\0")


class Owner:
    """A connection that recovers from lost connections, if asked to."""

    def __init__(self, recovers: bool) -> None:
        self.buffered = 0
        self.recovers = recovers

    def survives(self, error: AMQPError | None) -> bool:
        return self.recovers and isinstance(error, ConnectionLost)


def filled(owner: Owner, no_ack: bool = False) -> Inbox:
    inbox = Inbox(owner, no_ack)
    for tag in (1, 2, 3):
        inbox.deliver(tag, False, "", "k", EMPTY, b"")
    return inbox


def test_buffered_messages_are_counted_until_they_are_taken() -> None:
    owner = Owner(recovers=False)
    inbox = filled(owner)
    assert owner.buffered == 3
    assert inbox.take()[0] == 1
    assert owner.buffered == 2
    assert [item[0] for item in inbox.take_all()] == [2, 3]
    assert owner.buffered == 0


def test_a_lost_connection_ends_it_and_drops_what_will_come_again() -> None:
    owner = Owner(recovers=False)
    inbox = filled(owner)
    error = ConnectionLost("gone")
    inbox.end(error)
    assert (inbox.ended, inbox.error, len(inbox.items)) == (True, error, 0)
    assert owner.buffered == 0


def test_a_lost_connection_that_recovers_only_drops_what_will_come_again() -> None:
    inbox = filled(Owner(recovers=True))
    inbox.end(ConnectionLost("gone"))
    assert (inbox.ended, len(inbox.items)) == (False, 0)


def test_deliveries_without_acknowledgement_outlive_the_connection() -> None:
    inbox = filled(Owner(recovers=False), no_ack=True)
    inbox.end(ConnectionLost("gone"))
    assert (inbox.ended, len(inbox.items)) == (True, 3)


def test_a_delivery_and_a_recovery_wake_every_task_that_waits_once() -> None:
    inbox = Inbox(Owner(recovers=True), no_ack=False)
    waiting = inbox.expect()
    assert inbox.expect() is waiting
    inbox.deliver(1, False, "", "k", EMPTY, b"")
    assert waiting.done
    waiting = inbox.expect()
    assert not waiting.done
    inbox.wake()
    assert waiting.done
    inbox.wake()


@pytest.mark.parametrize("error", [None, NotFound(404, "x")])
def test_the_first_end_is_the_one_that_counts(error: AMQPError | None) -> None:
    inbox = filled(Owner(recovers=True))
    waiting = inbox.expect()
    inbox.end(error)
    assert waiting.done
    waiting = inbox.expect()
    inbox.finish(ConnectionLost("later"))
    assert inbox.ended
    assert inbox.error is error
    assert not waiting.done
