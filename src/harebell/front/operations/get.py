"""Read from a queue: the queue that consumers, basic.get and purges name, and what a get counts."""

from __future__ import annotations

from harebell.auth.permissions import READ
from harebell.base.counters import Counters
from harebell.front.common.channel_details import details_of
from harebell.front.common.channel_like import ChannelLike
from harebell.front.common.permission import QUEUE, check
from harebell.front.operations.caller import Caller
from harebell.model.queue.contract import Queue


def readable_queue(caller: Caller, name: str) -> Queue:
    """Find a queue to read from.

    Raises:
        Refusal: the user may not read it, or it does not exist or is exclusive to another owner.
    """
    check(caller, READ, QUEUE, name)
    return caller.vhost.queue(name, caller.owner)


def count_get(channel: ChannelLike, queue: Queue, *, no_ack: bool, redelivered: bool) -> Counters:
    """Count a message that was taken with basic.get or message.get.

    Returns:
        The counters of the channel and queue.
    """
    details = details_of(channel).queue(queue.name)
    for counters in (channel.counters, queue.counters, details):
        if no_ack:
            counters.get_no_ack += 1
        else:
            counters.get += 1
        counters.redeliver += redelivered
    return details


def count_empty(channel: ChannelLike, queue: Queue) -> None:
    """Count a basic.get or message.get that found the queue empty."""
    channel.counters.get_empty += 1
    queue.counters.get_empty += 1
    details_of(channel).queue(queue.name).get_empty += 1
