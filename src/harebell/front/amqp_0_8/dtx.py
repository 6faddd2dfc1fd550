"""The class dtx of 0-8 and 0-9 (class 100): a channel works for a named coordinator.

The specifications have select and start, and leave the rest to a private protocol between
coordinator and the server. Here that is the control socket (`harebell transactions`), or the dtx
classes of 0-10. A channel's work on a branch ends with the next start, or when the client closes
the channel; a channel that is lost, or closed by the broker, makes its branch fail.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_9_1 import flow
from harebell.front.amqp_0_9_1.branch_work import BranchWork
from harebell.front.common.errors import soft
from harebell.model.xa.association import Association
from harebell.model.xa.branch import BranchError
from harebell.model.xa.states import Fault
from harebell.model.xa.xid import FORMAT_0_8, XidError, checked_xid
from harebell.wire.v09 import methods
from harebell.wire.v09 import methods_older as own

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel

_CLASS, _SELECT, _START = 100, 10, 20
_CODES = {Fault.ALREADY_KNOWN: 530, Fault.TOO_MUCH: 506}
_OTHERWISE = 503


def select(channel: Channel, method: own.DtxSelect) -> None:
    """dtx.select: may be repeated; refused after tx.select and confirm.select."""
    if channel.association is None:
        if channel.transaction is not None or channel.confirms is not None:
            text = "the channel has transactions of its own, or confirms"
            raise soft(503, text, _CLASS, _SELECT)
        user, vhost = channel.connection.user, channel.vhost.name
        channel.association = Association(channel.connection.broker.branches, vhost, user)
        channel.association.select()
    channel.connection.send(channel.number, own.DtxSelectOk())


def start(channel: Channel, method: own.DtxStart) -> None:
    """dtx.start: later work belongs to this transaction; the earlier one ends on this channel."""
    association = channel.association
    # A transaction without a branch is one of tx.select.
    if association is None or (channel.transaction is not None and association.branch is None):
        text = "the channel has not selected distributed transactions alone: dtx.select first"
        raise soft(503, text, _CLASS, _START)
    _end(channel)
    try:
        xid = checked_xid(FORMAT_0_8, method.dtx_identifier.encode(), b"")
        association.start(xid)
    except XidError as error:
        raise soft(530, str(error), _CLASS, _START) from None
    except BranchError as error:
        raise soft(_CODES.get(error.fault, _OTHERWISE), error.text, _CLASS, _START) from None
    channel.transaction = BranchWork(channel, association)
    channel.connection.send(channel.number, own.DtxStartOk())


def _end(channel: Channel) -> None:
    """End this channel's work on the branch."""
    association = channel.association
    if association is not None and association.branch is not None:
        association.end(association.branch.xid)
        channel.transaction = None


def close(channel: Channel, method: methods.ChannelClose) -> None:
    """channel.close: end the work on the branch, then close."""
    _end(channel)
    flow.close(channel, method)


HANDLERS = {own.DtxSelect: select, own.DtxStart: start, methods.ChannelClose: close}
