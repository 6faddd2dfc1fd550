"""The class dtx-demarcation (class 100): begin and end a session's work on a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_9_1.branch_work import BranchWork
from harebell.front.amqp_0_10_transitional.dtx_errors import guarded
from harebell.front.common.errors import soft
from harebell.model.xa.association import Association
from harebell.model.xa.xid import xid_of_bytes
from harebell.wire.v09 import methods_transitional as methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_CLASS = 100
_SELECT, _START, _END = 10, 20, 30


def _association(channel: TransitionalChannel) -> Association:
    """Return the association of a session, which begins with dtx.select."""
    if channel.association is None:
        branches = channel.connection.broker.branches
        user = channel.connection.user
        channel.association = Association(branches, channel.vhost.name, user)
    return channel.association


def select(channel: TransitionalChannel, method: methods.DtxDemarcationSelect) -> None:
    """dtx-demarcation.select: may be repeated; refused after tx.select."""
    association = _association(channel)
    # A transaction without a branch is one of tx.select.
    if channel.transaction is not None and association.branch is None:
        text = "the session has transactions of its own: tx.select"
        raise soft(503, text, _CLASS, _SELECT)
    association.select()


def start(channel: TransitionalChannel, method: methods.DtxDemarcationStart) -> None:
    """dtx-demarcation.start: later commands belong to the branch, unless it is refused."""
    with guarded(channel, (_CLASS, _START), method.ticket):
        xid = xid_of_bytes(method.xid)
        association = _association(channel)
        if channel.transaction is not None and association.branch is None:
            text = f"xid {xid} cannot be started: the session has transactions of its own"
            raise soft(503, text, _CLASS, _START)
        status = association.start(xid, join=method.join, resume=method.resume)
        if association.branch is not None:
            channel.transaction = BranchWork(channel, association)
    channel.connection.send(channel.number, methods.DtxDemarcationStartOk(status))


def end(channel: TransitionalChannel, method: methods.DtxDemarcationEnd) -> None:
    """dtx-demarcation.end: later commands do not belong to the branch."""
    with guarded(channel, (_CLASS, _END), method.ticket):
        association = _association(channel)
        worked = association.branch is not None
        status = association.end(xid_of_bytes(method.xid), fail=method.fail, suspend=method.suspend)
        if worked and association.branch is None:
            channel.transaction = None
    channel.connection.send(channel.number, methods.DtxDemarcationEndOk(status))


HANDLERS = {
    methods.DtxDemarcationSelect: select,
    methods.DtxDemarcationStart: start,
    methods.DtxDemarcationEnd: end,
}
