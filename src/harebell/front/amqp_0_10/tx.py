"""The class tx: transfers and accepts that take effect together (AMQP 0-10, class 5).

Release and reject take effect at once, as the specification requires. After a rollback, accepted
deliveries are outstanding again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.limits import TRANSACTION_SLICE
from harebell.base.slices import Slices, stepped
from harebell.front.amqp_0_10.errors import (
    ILLEGAL_STATE,
    NOT_ALLOWED,
    RESOURCE_LIMIT_EXCEEDED,
    ExecutionError,
)
from harebell.front.amqp_0_10.long_commands import perform
from harebell.front.amqp_0_10.subscription import Subscription
from harebell.model.queue.contract import PENDING
from harebell.model.transaction import Transaction
from harebell.wire.v010 import commands

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.delivery import Delivery
    from harebell.front.amqp_0_10.session import Session
    from harebell.front.common.unacked import Unacked

TX = "tx"
_COMMIT, _ROLLBACK = (5, 2), (5, 3)
"""The codes of class and command."""


def select(session: Session, command: commands.TxSelect) -> None:
    """tx.select: once per session, and only if all subscriptions accept."""
    if session.selected:
        text = f"the session is transactional already: {session.selected}.select"
        raise ExecutionError(ILLEGAL_STATE, text)
    check_accepting(session)
    session.selected = TX
    session.transaction = Transaction(session.connection.registry.gauge)


def check_accepting(session: Session) -> None:
    """Refuse transactions beside a subscription without accepts."""
    for consumer in session.consumers.values():
        if isinstance(consumer, Subscription) and not consumer.accept and consumer.acquire:
            text = f"subscription '{consumer.tag}' accepts nothing; cancel it first"
            raise ExecutionError(NOT_ALLOWED, text)


def _transaction(session: Session) -> Transaction[Delivery | Unacked]:
    if not isinstance(session.transaction, Transaction):
        raise ExecutionError(ILLEGAL_STATE, "the session is not transactional: tx.select first")
    return session.transaction


def commit(session: Session, command: commands.TxCommit) -> None:
    """tx.commit: publish and settle; complete when that is on disk."""
    transaction = _transaction(session)
    commit = session.connection.commit
    tickets: list[int] = [0]

    def doing() -> Slices[int]:
        # Before the first publish: afterwards nothing could be undone.
        if not transaction.has_room():
            raise ExecutionError(RESOURCE_LIMIT_EXCEEDED, "a queue of the transaction is full")
        now = session.connection.broker.clock.steady
        return (yield from transaction.commit(session, commit, now))

    def done(result: int) -> None:
        tickets[0] = commit.ticket if result & PENDING else 0
        session.connection.registry.publishers.check_finished(session.connection)

    slices = transaction.in_one_commit(commit, doing())
    step = stepped(slices, session.connection.registry.work, TRANSACTION_SLICE, done)
    perform(session, step, lambda: tickets[0], _COMMIT)


def rollback(session: Session, command: commands.TxRollback) -> None:
    """tx.rollback: drop publishes and accepts."""
    slices = _transaction(session).forgetting(session.keep)

    def done(_: None) -> None:
        session.connection.registry.publishers.check_finished(session.connection)

    step = stepped(slices, session.connection.registry.work, TRANSACTION_SLICE, done)
    perform(session, step, lambda: 0, _ROLLBACK)


COMMANDS: dict[type, Any] = {
    commands.TxSelect: select,
    commands.TxCommit: commit,
    commands.TxRollback: rollback,
}
