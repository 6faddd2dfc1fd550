"""A transaction keeps work until its commit, and hands it back to whoever does it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import pytest

from harebell.base.limits import TRANSACTION_SLICE
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.ports import Commit
from harebell.base.slices import at_once
from harebell.model.limits import TRANSACTION_AT_ONCE
from harebell.model.queue.contract import PENDING, REJECTED, Queue
from harebell.model.transaction import (
    ACCEPT,
    REJECT,
    Transaction,
    due_at_commit,
    pinned,
    ttl_until_commit,
)
from tests.unit.model.things import rest, vhost


@dataclass
class Out:
    """A delivery that somebody settles."""

    queue: Queue
    position: int


class Doer:
    """Does the work of a transaction, and writes down in which order."""

    def __init__(self) -> None:
        self.done: list[object] = []

    def accept(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
        self.done.append((message.body, [queue.name for queue in queues], flags))
        result = 0
        for queue in queues:
            result |= queue.publish(message)
        return result

    def take_effect(self, entries: Sequence[Out], kind: int) -> None:
        self.done.append((len(entries), kind))
        for entry in entries:
            entry.queue.settle(entry.position)


def _message(body: bytes) -> Message:
    return Message("", "q", Properties(b"\0\0", delivery_mode=PERSISTENT), body)


def test_publishes_come_before_settlements_and_everything_only_once() -> None:
    here = vhost()
    queue = here.declare_queue("q", durable=True)
    queue.publish(_message(b"old"))
    taken = queue.get()
    assert taken is not None
    work: Transaction[Out] = Transaction()
    work.settle([Out(queue, taken[1])], ACCEPT)
    work.publish(_message(b"new"), (queue,), 1)
    assert work.pending() == (1, 1)
    assert (queue.ready_count(), queue.unacked) == (0, 1)
    doer, commit = Doer(), Commit()
    assert at_once(work.commit(doer, commit, 0)) & PENDING
    assert doer.done == [(b"new", ["q"], 1), (1, ACCEPT)]
    assert commit.joint
    assert (queue.ready_count(), queue.unacked) == (1, 0)
    assert work.pending() == (0, 0)
    at_once(work.commit(doer, commit, 0))
    assert len(doer.done) == 2


def test_a_single_change_needs_nothing_to_keep_it_together() -> None:
    here = vhost()
    queue = here.declare_queue("q", durable=True)
    work: Transaction[Out] = Transaction()
    work.publish(_message(b"1"), (queue,), 0)
    commit = Commit()
    at_once(work.commit(Doer(), commit, 0))
    assert not commit.joint
    work.publish(_message(b"2"), (queue,), 0)
    at_once(work.commit(Doer(), commit, 0, more=1))
    assert commit.joint


def test_a_rejection_may_move_a_message_so_it_counts_twice() -> None:
    here = vhost()
    queue = here.declare_queue("q", durable=True)
    work: Transaction[Out] = Transaction()
    queue.publish(_message(b"1"))
    taken = queue.get()
    assert taken is not None
    work.settle([Out(queue, taken[1])], REJECT)
    commit = Commit()
    at_once(work.commit(Doer(), commit, 0))
    assert commit.joint


def test_forgotten_acknowledgements_go_back_to_their_channel() -> None:
    here = vhost()
    queue = here.declare_queue("q")
    work: Transaction[Out] = Transaction()
    entries = [Out(queue, 7)]
    work.settle(entries, ACCEPT)
    work.publish(_message(b"1"), (queue,), 0)
    assert work.forget() == [entries]
    assert work.pending() == (0, 0)
    assert queue.ready_count() == 0


def test_a_queue_that_is_gone_by_then_gets_nothing() -> None:
    here = vhost()
    queue = here.declare_queue("q")
    work: Transaction[Out] = Transaction()
    work.publish(_message(b"1"), (queue,), 0)
    here.delete_queue("q")
    doer = Doer()
    assert at_once(work.commit(doer, Commit(), 0)) == 0
    assert doer.done == [(b"1", [], 0)]


def test_a_full_queue_leaves_no_room() -> None:
    here = vhost()
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    queue = here.declare_queue("q", arguments=arguments)
    work: Transaction[Out] = Transaction()
    work.publish(_message(b"1"), (queue,), 0)
    assert work.has_room()
    work.publish(_message(b"2"), (queue,), 0)
    assert not work.has_room()
    assert queue.publish(_message(b"3")) != REJECTED


def test_a_time_to_live_begins_with_the_commit() -> None:
    here = vhost()
    queue = here.declare_queue("q")
    work: Transaction[Out] = Transaction()
    message = _message(b"1")
    message.due = due_at_commit(500)
    assert ttl_until_commit(message.due) == 500
    work.publish(message, (queue,), 0)
    at_once(work.commit(Doer(), Commit(), 10_000))
    assert message.due == 10_500


def test_a_large_transaction_goes_in_slices_within_one_commit_of_the_disk() -> None:
    here = vhost()
    queue = here.declare_queue("q", durable=True)
    work: Transaction[Out] = Transaction()
    for number in range(1000):
        work.publish(_message(b"%d" % number), (queue,), 0)
    commit = Commit()
    other, slices = commit.pin(), work.in_one_commit(commit, work.commit(Doer(), commit, 0))
    assert other
    next(slices)
    assert queue.ready_count() == 0, "another one goes on"
    commit.unpin()
    seen = [0]
    while next(slices, "done") != "done":
        assert commit.pinned
        seen.append(queue.ready_count())
    assert not commit.pinned
    assert queue.ready_count() == 1000
    assert all(after - before <= TRANSACTION_SLICE for before, after in pairwise(seen))
    assert rest(queue) == [b"%d" % number for number in range(1000)]


def test_a_small_transaction_is_charged_and_then_done_in_one_turn() -> None:
    here = vhost()
    queue = here.declare_queue("q", durable=True)
    work: Transaction[Out] = Transaction()
    for number in range(TRANSACTION_AT_ONCE):
        work.publish(_message(b"%d" % number), (queue,), 0)
    commit = Commit()
    slices = work.in_one_commit(commit, work.commit(Doer(), commit, 0))
    seen = []
    while next(slices, "done") != "done":
        # Between two turns the store may close the commit.
        seen.append((queue.ready_count(), commit.joint, commit.pinned))
    assert seen == [(0, False, False)] * -(-TRANSACTION_AT_ONCE // TRANSACTION_SLICE)
    assert (queue.ready_count(), commit.joint) == (TRANSACTION_AT_ONCE, True)


@pytest.mark.parametrize(("publishes", "queues", "size"), [(20, 50, 1), (20, 1, 200_000)])
def test_few_publishes_to_many_queues_or_of_many_bytes_take_several_turns(
    publishes: int, queues: int, size: int
) -> None:
    here = vhost()
    found = tuple(here.declare_queue(f"q{number}") for number in range(queues))
    work: Transaction[Out] = Transaction()
    for _ in range(publishes):
        work.publish(_message(bytes(size)), found, 0)
    commit = Commit()
    slices = work.in_one_commit(commit, work.commit(Doer(), commit, 0))
    next(slices)
    assert commit.pinned
    assert 0 < found[0].ready_count() < publishes
    at_once(slices)
    assert not commit.pinned
    assert {queue.ready_count() for queue in found} == {publishes}


def test_a_transaction_that_fails_half_way_does_not_stop_all_commits() -> None:
    class Broken(Doer):
        def accept(self, message: Message, queues: tuple[Queue, ...], flags: int) -> int:
            raise ValueError("broken")

    queue = vhost().declare_queue("q")
    work: Transaction[Out] = Transaction()
    work.publish(_message(b"1"), (queue,), 0)
    commit = Commit()
    with pytest.raises(ValueError, match="broken"):
        at_once(pinned(commit, work.commit(Broken(), commit, 0)))
    assert not commit.pinned


def test_where_a_queue_refuses_what_is_too_much_nobody_comes_between_check_and_publish() -> None:
    queue = vhost().declare_queue(
        "q", arguments={"x-max-length": 900, "x-overflow": "reject-publish"}
    )
    work: Transaction[Out] = Transaction()
    for number in range(800):
        work.publish(_message(b"%d" % number), (queue,), 0)
    slices = work.commit(Doer(), Commit(), 0)
    assert next(slices, "done") == "done"
    assert queue.ready_count() == 800
