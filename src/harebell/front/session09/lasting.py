"""Methods that may take several turns: what is refused late closes the channel all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.base.work import Step
from harebell.front.long_operation import LongOperation
from harebell.front.session09.failure import channel_caught

if TYPE_CHECKING:
    from harebell.front.session09.channel import Channel


def is_open(channel: Channel) -> bool:
    """Whether the channel is still there to be answered."""
    return channel.connection.channels.get(channel.number) is channel


def perform(channel: Channel, step: Step, method: tuple[int, int]) -> None:
    """Carry a method out.

    Args:
        channel: where it came.
        step: does a slice, and at the end of the last one what is to follow.
        method: the numbers of class and method.
    """

    def failed(error: Exception) -> None:
        if is_open(channel):
            channel_caught(channel.connection, channel, error, *method)

    LongOperation(step, failed).perform(channel.connection)
