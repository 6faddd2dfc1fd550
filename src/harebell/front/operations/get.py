"""Read from a queue: the queue that consumers, basic.get and purges name, and what a get counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from harebell.auth.authority import Undecided
from harebell.auth.permissions import READ
from harebell.base.counters import Counters
from harebell.base.message import Message
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


def take_next(queue: Queue) -> tuple[Message, int, bool] | None:
    """Take the next message for basic.get or message.get, as `Queue.get`.

    Raises:
        Undecided: it is large and on disk: the method is repeated when it was read in slices.
    """
    repeat: list[Callable[[], object]] = []
    read = False

    def done() -> None:
        nonlocal read
        read = True
        for each in repeat:
            each()

    # It may be read within the call: with little to read, or without a limit of work.
    if queue.fetch_next(done) and not read:
        raise Undecided(repeat.append)
    return queue.get()


def count_get(channel: ChannelLike, queue: Queue, *, no_ack: bool, redelivered: bool) -> Counters:
    """Count a message that was taken with basic.get or message.get.

    Returns:
        The counters of the channel and queue.
    """
    details = details_of(channel).queue(queue.name)
    counted = (channel.counters, queue.counters, details)
    count_taken(counted, no_ack=no_ack, redelivered=redelivered)
    return details


def count_taken(counted: Iterable[Counters], *, no_ack: bool, redelivered: bool) -> None:
    """Count a message that was taken in each of some counters."""
    for counters in counted:
        if no_ack:
            counters.get_no_ack += 1
        else:
            counters.get += 1
        counters.redeliver += redelivered


def count_empty(channel: ChannelLike, queue: Queue) -> None:
    """Count a basic.get or message.get that found the queue empty."""
    channel.counters.get_empty += 1
    queue.counters.get_empty += 1
    details_of(channel).queue(queue.name).get_empty += 1
