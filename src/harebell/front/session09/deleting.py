"""exchange.delete and queue.delete of whatever has many bindings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from harebell.front.deletion import Deletion
from harebell.front.session09.failure import channel_caught

if TYPE_CHECKING:
    from harebell.front.session09.channel import Channel
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.kind import Queue


def is_open(channel: Channel) -> bool:
    """Whether the channel is still there to be answered."""
    return channel.connection.channels.get(channel.number) is channel


def perform_deletion(
    channel: Channel,
    thing: Queue | Exchange | None,
    finish: Callable[[], object],
    method: tuple[int, int],
) -> None:
    """Delete it; what is refused late closes the channel.

    Args:
        channel: where it was asked for.
        thing: the queue or the exchange; None when there is none.
        finish: deletes it without bindings, and answers.
        method: the numbers of class and method.
    """

    def failed(refusal: Exception) -> None:
        if is_open(channel):
            channel_caught(channel.connection, channel, refusal, *method)

    Deletion(channel.vhost, thing, finish, failed).perform(channel.connection)
