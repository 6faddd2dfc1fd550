"""The class dtx: branches of distributed transactions (AMQP 0-10, class 6).

Results are those of XA; an operation that the state of a branch does not allow ends the session. A
result is sent when the change is on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harebell.base.limits import TRANSACTION_SLICE
from harebell.base.message import Message
from harebell.base.slices import Slices, stepped
from harebell.front.amqp_0_10.errors import (
    COMMAND_INVALID,
    ILLEGAL_STATE,
    INTERNAL_ERROR,
    INVALID_ARGUMENT,
    NOT_ALLOWED,
    NOT_FOUND,
    RESOURCE_LIMIT_EXCEEDED,
    ExecutionError,
)
from harebell.front.amqp_0_10.long_commands import perform
from harebell.front.amqp_0_10.tx import TX, check_accepting
from harebell.model.queue.contract import Queue
from harebell.model.xa.association import Association
from harebell.model.xa.branch import Asker, BranchError
from harebell.model.xa.branches import Branches, Outcome
from harebell.model.xa.states import Fault
from harebell.model.xa.xid import Xid, XidError, checked_xid
from harebell.wire.v010 import commands, structs
from harebell.wire.v010.amqp_0_10 import AMQP_0_10

if TYPE_CHECKING:
    from harebell.base.counters import Counters
    from harebell.front.amqp_0_10.delivery import Delivery
    from harebell.front.amqp_0_10.session import Session
    from harebell.front.common.unacked import Unacked
    from harebell.model.xa.branch import Branch

DTX = "dtx"
_COMMIT, _PREPARE, _ROLLBACK = (6, 4), (6, 7), (6, 9)
"""The codes of class and command."""
_CODES = {
    Fault.UNKNOWN_XID: NOT_FOUND,
    Fault.ALREADY_KNOWN: NOT_ALLOWED,
    Fault.ILLEGAL_STATE: ILLEGAL_STATE,
    Fault.INVALID: COMMAND_INVALID,
    Fault.BAD_VALUE: INVALID_ARGUMENT,
    Fault.TOO_MUCH: RESOURCE_LIMIT_EXCEEDED,
    Fault.FAILED: INTERNAL_ERROR,
}


class BranchWork:
    """Work on a branch, in place of a transaction of the session.

    Args:
        association: of the session; it has a branch while this object is used.
        counters: of the session.
    """

    __slots__ = ("_association", "_counters")

    def __init__(self, association: Association, counters: Counters) -> None:
        self._association = association
        self._counters = counters

    def _branch(self) -> Branch:
        branch = self._association.branch
        assert branch is not None, "the session works on a branch"
        return branch

    def publish(self, message: Message, queues: tuple[Queue, ...], flags: int) -> None:
        """Keep a transfer for the branch's commit."""
        self._branch().publish(message, queues, flags)

    def settle(self, entries: list[Delivery | Unacked], kind: int) -> None:
        """Keep accepted deliveries for the branch's commit."""
        # Their credit is free now: the commit may come from another session, long after.
        for entry in entries:
            entry.count_ack()
            entry.forget()
        self._branch().settle(entries, kind)
        self._counters.ack += len(entries)
        for queue in {entry.queue: None for entry in entries}:
            queue.drain()

    def pending(self) -> tuple[int, int]:
        """Return the numbers of transfers and of accepted deliveries of the branch."""
        return self._branch().pending()

    def forget(self) -> list[list[Delivery | Unacked]]:
        """Roll back the branch: the session ended before it."""
        self._association.close()
        return []


@contextmanager
def _with_codes_of_version() -> Iterator[None]:
    """Translate refusals into the codes of this version."""
    try:
        yield
    except XidError as error:
        raise ExecutionError(INVALID_ARGUMENT, str(error), 0) from None
    except BranchError as error:
        raise ExecutionError(_CODES[error.fault], error.text) from None


def _xid(named: structs.Xid) -> Xid:
    return checked_xid(named.format, named.global_id, named.branch_id)


def _association(session: Session) -> Association:
    if session.association is None:
        branches, user = session.connection.broker.branches, session.user
        session.association = Association(branches, session.vhost.name, user)
    return session.association


def select(session: Session, command: commands.DtxSelect) -> None:
    """dtx.select: may be repeated; refused after tx.select."""
    if session.selected == TX:
        raise ExecutionError(ILLEGAL_STATE, "the session is transactional already: tx.select")
    check_accepting(session)
    session.selected = DTX
    _association(session).select()


def start(session: Session, command: commands.DtxStart) -> None:
    """dtx.start: later commands belong to the branch, unless the result is a refusal."""
    association = _association(session)
    with _with_codes_of_version():
        status = association.start(_xid(command.xid), join=command.join, resume=command.resume)
    if association.branch is not None:
        session.transaction = BranchWork(association, session.counters)
    session.result(structs.XaResult(status))


def end(session: Session, command: commands.DtxEnd) -> None:
    """dtx.end: later commands do not belong to the branch."""
    association = _association(session)
    worked = association.branch is not None
    with _with_codes_of_version():
        status = association.end(_xid(command.xid), fail=command.fail, suspend=command.suspend)
    if worked and association.branch is None:
        session.transaction = None
    session.result(structs.XaResult(status))


def _perform(
    session: Session,
    named: structs.Xid,
    call: Callable[[Branches, str, Xid, Asker], Slices[Outcome]],
    command: tuple[int, int],
) -> None:
    """Do an operation on a branch, and hold its answer until it is on disk."""
    connection = session.connection

    def doing() -> Slices[Outcome]:
        with _with_codes_of_version():
            xid = _xid(named)
            return (
                yield from call(connection.broker.branches, session.vhost.name, xid, session.user)
            )

    def done(outcome: Outcome) -> None:
        # A transaction manager forgets its own record at the result: ours must be on disk before.
        session.connection.hold_until(outcome.ticket)
        session.result(structs.XaResult(outcome.status))

    step = stepped(doing(), connection.registry.work, TRANSACTION_SLICE, done)
    perform(session, step, lambda: 0, command)


def prepare(session: Session, command: commands.DtxPrepare) -> None:
    """dtx.prepare: store the branch, so that it can be committed."""
    _perform(session, command.xid, Branches.prepare, _PREPARE)


def commit(session: Session, command: commands.DtxCommit) -> None:
    """dtx.commit: publish and settle what the branch has."""

    def call(branches: Branches, vhost: str, xid: Xid, asker: Asker) -> Slices[Outcome]:
        return branches.commit(vhost, xid, asker, one_phase=command.one_phase, in_turns=True)

    _perform(session, command.xid, call, _COMMIT)


def rollback(session: Session, command: commands.DtxRollback) -> None:
    """dtx.rollback: drop the work of the branch."""
    _perform(session, command.xid, Branches.rollback, _ROLLBACK)


def forget(session: Session, command: commands.DtxForget) -> None:
    """dtx.forget: remove a heuristic decision."""
    with _with_codes_of_version():
        branches = session.connection.broker.branches
        outcome = branches.forget(session.vhost.name, _xid(command.xid), session.user)
    session.connection.hold_until(outcome.ticket)
    session.wait_for(outcome.ticket)


def get_timeout(session: Session, command: commands.DtxGetTimeout) -> None:
    """dtx.get-timeout: in seconds."""
    branches = session.connection.broker.branches
    with _with_codes_of_version():
        seconds = branches.timeout(session.vhost.name, _xid(command.xid), session.user)
    session.result(structs.GetTimeoutResult(seconds))


def set_timeout(session: Session, command: commands.DtxSetTimeout) -> None:
    """dtx.set-timeout: the time starts now."""
    branches = session.connection.broker.branches
    with _with_codes_of_version():
        xid = _xid(command.xid)
        branches.set_timeout(session.vhost.name, xid, session.user, command.timeout)


def recover(session: Session, command: commands.DtxRecover) -> None:
    """dtx.recover: list the user's prepared and heuristically completed branches."""
    xids = session.connection.broker.branches.in_doubt(session.vhost.name, session.user)
    named: list[Any] = [structs.Xid(*xid) for xid in xids]
    session.result(structs.RecoverResult(AMQP_0_10.struct_array(named)))


COMMANDS: dict[type, Callable[[Any, Any], None]] = {
    commands.DtxSelect: select,
    commands.DtxStart: start,
    commands.DtxEnd: end,
    commands.DtxCommit: commit,
    commands.DtxForget: forget,
    commands.DtxGetTimeout: get_timeout,
    commands.DtxPrepare: prepare,
    commands.DtxRecover: recover,
    commands.DtxRollback: rollback,
    commands.DtxSetTimeout: set_timeout,
}
