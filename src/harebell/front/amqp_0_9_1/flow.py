"""The channel class (AMQP 0-9-1 1.5) except channel.open, which the connection serves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.common.errors import hard
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel


def flow(channel: Channel, method: methods.ChannelFlow) -> None:
    """channel.flow: active=true is confirmed, active=false refused, as with RabbitMQ."""
    if not method.active:
        # RabbitMQ dropped the flow control of consumers: basic.qos limits deliveries.
        raise hard(540, "active=false", 20, 20)
    channel.connection.send(channel.number, methods.ChannelFlowOk(active=True))


def close(channel: Channel, method: methods.ChannelClose) -> None:
    """channel.close: the channel ends completely before its number can be used again."""
    connection = channel.connection
    connection.drop_channel(channel)

    # Behind the slices of a long requeue, so that a client may count on it after close-ok.
    def answer() -> bool:
        connection.send(channel.number, methods.ChannelCloseOk())
        return True

    connection.perform(answer)


HANDLERS = {
    methods.ChannelFlow: flow,
    methods.ChannelClose: close,
}
