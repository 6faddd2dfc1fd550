"""The class dtx-coordination (class 105): prepare, commit, rollback and recovery of branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from harebell.auth.users import User
from harebell.base.limits import TRANSACTION_SLICE
from harebell.base.slices import Slices, stepped
from harebell.front.amqp_0_9_1.long_methods import is_open, perform
from harebell.front.amqp_0_10_transitional.dtx_errors import guarded
from harebell.front.common.errors import soft
from harebell.front.limits import RECOVERED_XIDS
from harebell.model.xa.branches import Branches, Outcome
from harebell.model.xa.states import Status
from harebell.model.xa.xid import Xid, xid_of_bytes
from harebell.wire.v09 import methods_transitional as methods
from harebell.wire.v09.method import Method

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_CLASS = 105
_COMMIT, _FORGET, _GET_TIMEOUT, _PREPARE = 10, 20, 30, 40
_RECOVER, _ROLLBACK, _SET_TIMEOUT = 50, 60, 70
_NAME, _SEQUENCE, _LONGSTR = b"xids", b"\xa9", b"\xa0"


class _Named(Protocol):
    """A method about a branch."""

    ticket: int
    xid: bytes


def _branches(channel: TransitionalChannel) -> Branches:
    branches: Branches = channel.connection.broker.branches
    return branches


def _perform(
    channel: TransitionalChannel,
    method: _Named,
    call: Callable[[str, Xid, User], Slices[Outcome]],
    number: int,
    answer: Callable[[Status], Method],
) -> None:
    """Do an operation on a branch, and answer when it is on disk."""
    ids = _CLASS, number

    def doing() -> Slices[Outcome]:
        with guarded(channel, ids, method.ticket):
            xid = xid_of_bytes(method.xid)
            return (yield from call(channel.vhost.name, xid, channel.connection.user))

    def done(outcome: Outcome) -> None:
        # A transaction manager forgets its own record at the answer: ours must be on disk before.
        channel.connection.hold_until(outcome.ticket)
        if is_open(channel):
            channel.connection.send(channel.number, answer(outcome.status))

    perform(
        channel, stepped(doing(), channel.connection.registry.work, TRANSACTION_SLICE, done), ids
    )


def commit(channel: TransitionalChannel, method: methods.DtxCoordinationCommit) -> None:
    """dtx-coordination.commit: publish and settle what the branch has."""
    branches = _branches(channel)

    def call(vhost: str, xid: Xid, user: User) -> Slices[Outcome]:
        return branches.commit(vhost, xid, user, one_phase=method.one_phase, in_turns=True)

    _perform(channel, method, call, _COMMIT, methods.DtxCoordinationCommitOk)


def prepare(channel: TransitionalChannel, method: methods.DtxCoordinationPrepare) -> None:
    """dtx-coordination.prepare: store the branch, so that it can be committed."""
    call = _branches(channel).prepare
    _perform(channel, method, call, _PREPARE, methods.DtxCoordinationPrepareOk)


def rollback(channel: TransitionalChannel, method: methods.DtxCoordinationRollback) -> None:
    """dtx-coordination.rollback: drop the work of the branch."""
    call = _branches(channel).rollback
    _perform(channel, method, call, _ROLLBACK, methods.DtxCoordinationRollbackOk)


def forget(channel: TransitionalChannel, method: methods.DtxCoordinationForget) -> None:
    """dtx-coordination.forget: complete when the decision is removed from disk."""
    with guarded(channel, (_CLASS, _FORGET), method.ticket):
        xid = xid_of_bytes(method.xid)
        outcome = _branches(channel).forget(channel.vhost.name, xid, channel.connection.user)
    if outcome.ticket > channel.connection.commit.done:
        channel.completions.wait(outcome.ticket)


def get_timeout(channel: TransitionalChannel, method: methods.DtxCoordinationGetTimeout) -> None:
    """dtx-coordination.get-timeout: it has no ticket."""
    with guarded(channel, (_CLASS, _GET_TIMEOUT), 0):
        xid = xid_of_bytes(method.xid)
        seconds = _branches(channel).timeout(channel.vhost.name, xid, channel.connection.user)
    answer = methods.DtxCoordinationGetTimeoutOk(timeout=seconds)
    channel.connection.send(channel.number, answer)


def set_timeout(channel: TransitionalChannel, method: methods.DtxCoordinationSetTimeout) -> None:
    """dtx-coordination.set-timeout: the time starts now."""
    with guarded(channel, (_CLASS, _SET_TIMEOUT), method.ticket):
        xid = xid_of_bytes(method.xid)
        user = channel.connection.user
        _branches(channel).set_timeout(channel.vhost.name, xid, user, method.timeout)


def recover(channel: TransitionalChannel, method: methods.DtxCoordinationRecover) -> None:
    """dtx-coordination.recover: send the next xids of a scan, as many as fit into a frame."""
    with guarded(channel, (_CLASS, _RECOVER), method.ticket):
        # startscan within a scan restarts it (the rule "recovery-already-open").
        if method.startscan or (method.endscan and channel.scan is None):
            user = channel.connection.user
            channel.scan = _branches(channel).in_doubt(channel.vhost.name, user)
        scan = channel.scan
        if scan is None:
            raise soft(503, "there is no recovery scan: start one", _CLASS, _RECOVER)
    channel.scan = None if method.endscan else scan[RECOVERED_XIDS:]
    table: Any = _table(scan[:RECOVERED_XIDS])
    channel.connection.send(channel.number, methods.DtxCoordinationRecoverOk(table))


def _table(xids: Sequence[Xid]) -> bytes:
    """Encode the table of a recovery scan: one byte string with a length of 32 bits.

    The specification requires this type, whatever types the peer has used; no other type can hold
    the value.
    """
    encoded = b"".join([_LONGSTR + _sized(xid.encode()) for xid in xids])
    return _sized(bytes([len(_NAME)]) + _NAME + _SEQUENCE + _sized(encoded))


def _sized(data: bytes) -> bytes:
    return len(data).to_bytes(4) + data


HANDLERS = {
    methods.DtxCoordinationCommit: commit,
    methods.DtxCoordinationForget: forget,
    methods.DtxCoordinationGetTimeout: get_timeout,
    methods.DtxCoordinationPrepare: prepare,
    methods.DtxCoordinationRecover: recover,
    methods.DtxCoordinationRollback: rollback,
    methods.DtxCoordinationSetTimeout: set_timeout,
}
