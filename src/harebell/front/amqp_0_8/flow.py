"""The channel class of 0-8 and 0-9: the client may stop deliveries; 0-9 also has pings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.common.errors import hard
from harebell.wire.v09 import methods, methods_older

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.legacy_channel import LegacyChannel

_RESUME = (20, 50)


def flow(channel: LegacyChannel, method: methods.ChannelFlow) -> None:
    """channel.flow: stop or resume deliveries; basic.get is not affected."""
    channel.stopped = not method.active
    channel.connection.send(channel.number, methods.ChannelFlowOk(active=method.active))
    if method.active:
        channel.serve()


def resume(channel: LegacyChannel, method: methods_older.ChannelResume) -> None:
    """channel.resume: refused, because channels end with their connection."""
    raise hard(540, "channel.resume: a channel ends with its connection", *_RESUME)


def ping(channel: LegacyChannel, method: methods_older.ChannelPing) -> None:
    """channel.ping, or channel.pong: reply with channel.ok."""
    channel.connection.send(channel.number, methods_older.ChannelOk())


def ok(channel: LegacyChannel, method: methods.Method) -> None:
    """Ignore a reply without a request."""


HANDLERS = {
    methods.ChannelFlow: flow,
    methods_older.ChannelResume: resume,
    methods_older.ChannelPing: ping,
    methods_older.ChannelPong: ping,
    methods_older.ChannelOk: ok,
    methods.ChannelFlowOk: ok,
    methods.ChannelCloseOk: ok,
    methods.BasicCancelOk: ok,
}
