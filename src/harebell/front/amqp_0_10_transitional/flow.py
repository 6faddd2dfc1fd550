"""The class channel (class 21) except channel.open: flow and close.

On a channel with a session, the class session does both.
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
    """channel.flow: stop or resume deliveries."""
    _check(channel, 20)
    channel.connection.send(channel.number, methods.ChannelFlowOk(active=method.active))
    channel.set_flow(active=method.active)


def flow_ok(channel: TransitionalChannel, method: methods.ChannelFlowOk) -> None:
    """channel.flow-ok: ignored, the broker sends no channel.flow."""
    _check(channel, 21)


def close(channel: TransitionalChannel, method: methods.ChannelClose) -> None:
    """channel.close: the channel ends completely before its number can be used again."""
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
