"""Methods that may take several turns; a late refusal closes the channel like an early one."""

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
    """True if the channel is still open for a reply."""
    return channel.connection.channels.get(channel.number) is channel


def perform(channel: OpenChannel, step: Step, method: tuple[int, int]) -> None:
    """Execute a method in slices.

    Args:
        channel: the channel of the method.
        step: does a slice; the last one also does what follows.
        method: the numbers of class and method.
    """

    def failed(error: Exception) -> None:
        # On a channel that was closed meanwhile no peer waits for the error.
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
        channel: the channel of the method.
        name: of the exchange.
        exchange: None if it does not exist.
        method: the numbers of class and method.
        reply: the reply that is sent when that is on disk; None for none.
    """

    def answer() -> None:
        if is_open(channel):
            channel.hold_until_recorded()
            if reply is not None:
                channel.connection.send(channel.number, reply)

    perform(channel, exchange_deletion(channel.vhost, name, exchange, answer), method)
