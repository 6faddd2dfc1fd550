"""Dispositions of the peer: what happens to the deliveries of a range (AMQP 1.0 2.7.6 and 3.4).

    accepted                    removed for good
    rejected                    dead-lettered (`verdicts`)
    released, modified          `verdicts`
    transactional-state         as its outcome, at the commit
    settled without an outcome  the default outcome of every source here: released

The work is bounded by what is not settled, however long the range is, and is done in slices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.base.slices import Slices, at_once, stepped
from harebell.front.amqp_1_0.errors import LinkError, SessionError
from harebell.front.amqp_1_0.session import SERIALS, near
from harebell.front.amqp_1_0.transactions import kind_of, open_transaction
from harebell.front.amqp_1_0.verdicts import unrecognised, verdict_of
from harebell.front.limits import REFUSED_AT_ONCE, SETTLED_AT_ONCE
from harebell.kernels.performatives import ACCEPTED, MODIFIED, REJECTED, RELEASED
from harebell.wire.v1.composites import (
    Accepted,
    Disposition,
    Modified,
    Received,
    Rejected,
    Released,
    TransactionalState,
)
from harebell.wire.v1.performatives import decode_performative

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.session import Session
    from harebell.front.common.unacked import Unacked
    from harebell.model.queue.contract import Queue

_STATES: dict[int, Any] = {
    ACCEPTED: Accepted(),
    REJECTED: Rejected(),
    RELEASED: Released(),
    MODIFIED: Modified(),
}
_PER_STEP = REFUSED_AT_ONCE


def take(session: Session, asked: Disposition) -> None:
    """Take a disposition."""
    last = asked.first if asked.last is None else asked.last
    settle(session, asked.role, asked.first, last, asked.settled, asked.state)


def take_fields(
    session: Session, role: bool, first: int, last: int, settled: bool, outcome: int, state: bytes
) -> None:
    """Take a disposition, as the scanner reads it.

    Args:
        session: the session of the deliveries.
        role: whether a receiver speaks.
        first: the first of the deliveries.
        last: the last one.
        settled: whether the peer has forgotten them.
        outcome: the code of the state; 0 without one.
        state: the encoded state, if it has fields; else b"".
    """
    found: Any = None
    if state:
        session.connection.charge(len(state))
        found = decode_performative(state)[0]
    elif outcome:
        found = _STATES.get(outcome)
        if found is None:
            raise unrecognised(f"{outcome:#x}")
    settle(session, role, first, last, settled, found)


def settle(session: Session, role: bool, first: int, last: int, settled: bool, state: Any) -> None:
    """Give the deliveries of a range their outcome.

    Args:
        session: the session of the deliveries.
        role: whether a receiver speaks: of what the broker has sent.
        first: the first of the deliveries.
        last: the last one.
        settled: whether the peer has forgotten them.
        state: their outcome; None for none.

    Raises:
        SessionError: invalid-field, there is no such outcome.
    """
    if not role:
        # The peer speaks of what it has sent: with rcv-settle-mode second it settles that.
        if settled:
            session.settled_by_sender(first, last)
        return
    if state is None or type(state) is Received:
        if not settled:
            # No outcome yet.
            return
        state = _STATES[RELEASED]
    low = near(first, session.next_tag)
    high = low + (last - first) % SERIALS
    low, high = max(low, session.unacked.first()), min(high, session.next_tag - 1)
    if type(state) is TransactionalState:
        if low <= high:
            _retire(session, low, high, state, settled=settled)
        return
    # Also without a delivery in the range: the state is sent back.
    act = None if type(state) is Accepted else verdict_of(state)
    if low <= high:
        _settle(session, low, high, act)
    if not settled:
        # The peer keeps the deliveries until it knows that the broker has their outcome.
        frames = session.connection.frames
        frames.disposition(session.number, False, first, last, True, state.encoded())
        session.connection.touch()


def _settle(session: Session, low: int, high: int, act: Callable[[Unacked], object] | None) -> None:
    """Do something with each delivery; None accepts them, which is done run by run."""
    if act is None:
        _perform(session, _accepting(session, low, high), high - low + 1, SETTLED_AT_ONCE)
        return
    _perform(session, _acting(session, low, high, act), high - low + 1, _PER_STEP)


def _retire(
    session: Session, low: int, high: int, state: TransactionalState, *, settled: bool
) -> None:
    """Settle deliveries in a transaction: at its commit.

    Raises:
        SessionError: invalid-field, it has no outcome; unknown-id.
    """
    try:
        transaction = open_transaction(session, state)
    except LinkError as error:
        raise SessionError(error.condition, error.text) from None
    outcome = state.outcome
    if outcome is None:
        if not settled:
            return
        outcome = _STATES[RELEASED]

    # Before the first delivery is taken: a wrong outcome leaves all of them where they are.
    kind = kind_of(outcome)

    def retire(entry: Unacked) -> None:
        transaction.retire(entry, outcome, kind, settled=settled)

    _perform(session, _acting(session, low, high, retire), high - low + 1, _PER_STEP)


def _accepting(session: Session, low: int, high: int) -> Slices[None]:
    number = low
    while number <= high:
        last = min(high, number + SETTLED_AT_ONCE - 1)
        session.accept(number, last)
        yield
        number = max(session.unacked.next_from(last + 1), last + 1)


def _acting(
    session: Session, low: int, high: int, act: Callable[[Unacked], object]
) -> Slices[None]:
    """Do something with each of some deliveries, then serve their queues."""
    unacked = session.unacked
    queues: dict[Queue, None] = {}
    number = unacked.next_from(low)
    while number <= high and unacked.count:
        # Between two slices a delivery may time out, or be settled by the end of its session.
        entry = unacked.take(number)
        if entry is not None:
            act(entry)
            queues[entry.queue] = None
            yield
        number = unacked.next_from(number + 1)
    _drain(queues)


def _drain(queues: dict[Queue, None]) -> None:
    # Only now: a queue that was served earlier would deliver messages out of order.
    for queue in queues:
        if not queue.deleted:
            queue.drain()


def _perform(session: Session, slices: Slices[None], count: int, few: int) -> None:
    """Do the work at once if it is little, and in slices otherwise."""
    connection = session.connection
    if min(count, session.unacked.count) <= few:
        at_once(slices)
        return
    connection.perform(stepped(slices, connection.registry.work, 1, bool))
