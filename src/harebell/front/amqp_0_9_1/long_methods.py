"""Methods that may take several turns; a late refusal closes the channel, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.work import Step
from harebell.front.common.long_operation import LongOperation
from harebell.front.operations.delete import exchange_deletion

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.open_channel import OpenChannel
    from harebell.model.exchange import Exchange
    from harebell.wire.v09.method import Method


def is_open(channel: OpenChannel) -> bool:
    """Whether the channel is still there to be answered."""
    return channel.connection.channels.get(channel.number) is channel


def perform(channel: OpenChannel, step: Step, method: tuple[int, int]) -> None:
    """Carry a method out.

    Args:
        channel: where it came.
        step: does a slice, and at the end of the last one what is to follow.
        method: the numbers of class and method.
    """

    def failed(error: Exception) -> None:
        if is_open(channel):
            channel.connection.channel_caught(channel, error, *method)

    LongOperation(step, failed).perform(channel.connection)


def delete_exchange(
    channel: OpenChannel,
    name: str,
    exchange: Exchange | None,
    method: tuple[int, int],
    reply: Method | None = None,
) -> None:
    """Delete an exchange that may have many bindings.

    Args:
        channel: where that was asked for.
        name: of the exchange.
        exchange: None when there is none of that name.
        method: the numbers of class and method.
        reply: what is sent when that is recorded; None for nothing.
    """

    def answer() -> None:
        if is_open(channel):
            channel.hold_until_recorded()
            if reply is not None:
                channel.connection.send(channel.number, reply)

    perform(channel, exchange_deletion(channel.vhost, name, exchange, answer), method)
