"""The class channel (class 21), but for opening: flow that is obeyed, and the end.

On a channel with a session the class session does both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_9_1 import flow as common
from harebell.front.common.errors import hard
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_CLASS = 21


def _check(channel: TransitionalChannel, method_id: int) -> None:
    if channel.session is not None:
        raise hard(503, "the channel was opened by session.open", _CLASS, method_id)


def flow(channel: TransitionalChannel, method: methods.ChannelFlow) -> None:
    """channel.flow: stop delivering, or go on."""
    _check(channel, 20)
    channel.connection.send(channel.number, methods.ChannelFlowOk(active=method.active))
    channel.set_flow(active=method.active)


def flow_ok(channel: TransitionalChannel, method: methods.ChannelFlowOk) -> None:
    """channel.flow-ok: harmless, we never ask for it."""
    _check(channel, 21)


def close(channel: TransitionalChannel, method: methods.ChannelClose) -> None:
    """channel.close: everything of the channel ends before its number is free again."""
    _check(channel, 40)
    common.close(channel, method)


def close_ok(channel: TransitionalChannel, method: methods.ChannelCloseOk) -> None:
    """channel.close-ok that answers nothing is ignored."""
    _check(channel, 41)


HANDLERS = {
    methods.ChannelFlow: flow,
    methods.ChannelFlowOk: flow_ok,
    methods.ChannelClose: close,
    methods.ChannelCloseOk: close_ok,
}
