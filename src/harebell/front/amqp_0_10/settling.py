"""Settle the deliveries that ranges of numbers select, in slices under the work budget."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from harebell.base.sequence import Sequence
from harebell.base.slices import Slices, ended, stepped
from harebell.front.amqp_0_10.delivery import Delivery
from harebell.front.amqp_0_10.long_commands import perform
from harebell.front.amqp_0_10.number_ranges import NumberRanges, is_in, merged, numbers_in
from harebell.front.limits import COMPLETED_PER_STEP, SETTLED_AT_ONCE
from harebell.model.queue.contract import PENDING, Queue
from harebell.model.transaction import Transaction

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.session import Session


def taken(
    members: Sequence, ranges: NumberRanges, few: int = COMPLETED_PER_STEP
) -> Iterator[list[Delivery]]:
    """Remove deliveries, and yield them in lists of a few."""
    numbers = numbers_in(members, ranges)
    while some := list(islice(numbers, few)):
        # Between two lists a delivery may time out, or be settled by the end of its session.
        entries = [entry for number in some if (entry := members.take(number)) is not None]
        if entries:
            yield entries


def settle(
    session: Session,
    ranges: NumberRanges,
    batches: Iterator[list[Delivery]],
    act: Callable[[list[Delivery]], object],
    command: tuple[int, int],
    few: int = SETTLED_AT_ONCE,
) -> None:
    """Do something with deliveries, then serve their queues; complete when that is on disk.

    Args:
        session: the session of the command.
        ranges: of the command; many numbers are processed in slices.
        batches: removes the deliveries, and yields them.
        act: settles some of them.
        command: the codes of class and command.
        few: how many deliveries are little work.
    """
    queues: dict[Queue, None] = {}

    def doing() -> Slices[None]:
        for entries in batches:
            act(entries)
            queues.update([(entry.queue, None) for entry in entries])
            yield

    in_slices(session, ranges, doing(), lambda: _drain(session, queues), command, few)


def in_slices(
    session: Session,
    ranges: NumberRanges,
    slices: Slices[None],
    finish: Callable[[], int],
    command: tuple[int, int],
    few: int = SETTLED_AT_ONCE,
) -> None:
    """Do the work of a command in slices, at once if its ranges are small.

    Args:
        session: the session of the command.
        ranges: of the command.
        slices: the work, of a few deliveries each.
        finish: called afterwards; returns the commit that completes the command.
        command: the codes of class and command.
        few: how many deliveries are little work.
    """
    connection = session.connection
    if sum([last - first + 1 for first, last in ranges]) <= few:
        ended(slices)
        session.wait_for(finish())
        return
    tickets = [0]

    def done(_: None) -> None:
        tickets[0] = finish()

    step = stepped(slices, connection.registry.work, min(few, COMPLETED_PER_STEP), done)
    perform(session, step, lambda: tickets[0], command)


def unaccepted(session: Session, ranges: NumberRanges) -> Iterator[list[Delivery]]:
    """Remove deliveries that are accepted in an uncommitted transaction (tx), and yield them."""
    transaction = session.transaction
    if not isinstance(transaction, Transaction):
        return
    spans = merged(ranges)
    for entries, _ in list(transaction.settled):
        mine = [
            each for each in entries if isinstance(each, Delivery) and is_in(each.number, spans)
        ]
        if mine and session.transaction is transaction:
            gone = set(mine)
            entries[:] = [entry for entry in entries if entry not in gone]
            session.connection.registry.work.charge(len(mine))
            yield mine


def _drain(session: Session, queues: dict[Queue, None]) -> int:
    """Serve the queues of settled deliveries; return the commit that completes the command."""
    result = 0
    for queue in queues:
        if not queue.deleted:
            # Completion means durable: unlike basic.ack, the command has an answer that waits.
            result |= queue.sync_soon()
            queue.drain()
    return session.connection.commit.ticket if result & PENDING else 0
