"""Make the claims of leased queues together: send all before the first answer.

    lease.commit a | lease.claim a | lease.commit b | lease.claim b | ...        one write
    answers, when all of it is synced                                            one wait

The readers keep the answers and use them in place of a request. Every other case (an error, a
group that must be opened, a lost connection) is left to the readers, queue by queue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from harebell.client.blocking import Channel
from harebell.client.errors import ChannelClosed
from harebell.client.protocol import leases
from harebell.client.protocol.call import Call
from harebell.spark.reading.broker_connection import LOST, BrokerConnection
from harebell.spark.reading.leased.leased_reader import ClaimRequest, LeasedReader
from harebell.spark.reading.offsets import QueueOffset
from harebell.spark.reading.queue_reader import QueueReader
from harebell.wire.v09.lease import ClaimInfo


def claim_together(
    connection: BrokerConnection,
    following: Sequence[tuple[QueueReader, QueueOffset]],
    max_messages: int,
    byte_count: int | None,
    *,
    more: bool,
) -> None:
    """Make claims, and commit the claims before them, in one round trip and one commit of the disk.

    Args:
        connection: the connection of the readers.
        following: the readers, and the offsets that `advance` or `extend` will get.
        max_messages: the argument of `advance` or `extend`.
        byte_count: the argument of `advance` or `extend`.
        more: whether the next call is `extend`.
    """
    requested: list[tuple[LeasedReader, ClaimRequest]] = []
    for each, offset in following:
        if isinstance(each, LeasedReader):
            request = each.next_request(offset, max_messages, byte_count, more=more)
            if request is not None:
                requested.append((each, request))
    if not requested:
        return
    calls: list[tuple[Call[int] | None, Call[ClaimInfo | None]]] = []
    try:
        channel = connection.opened()
        calls = [_sent(channel, request) for _, request in requested]
        for committed, claimed in calls:
            if committed is not None:
                channel.connection.finish(committed)
            channel.connection.finish(claimed)
    except ChannelClosed:
        # The reader of this call repeats it, and raises the error.
        connection.channel_is_over()
    except LOST:
        # Whether the broker has made the claims is unknown: only opening the groups tells.
        connection.lost()
        for reader, _ in requested:
            reader.forget_group()
        return
    # `calls` is empty if the channel could not be opened: then no reader gets an answer.
    for (reader, request), (committed, claimed) in zip(requested, calls, strict=False):
        if committed is not None and _answered(committed):
            reader.record_commit(request.commit)
        if _answered(claimed):
            reader.keep_answer(claimed.value())


def _sent(
    channel: Channel, request: ClaimRequest
) -> tuple[Call[int] | None, Call[ClaimInfo | None]]:
    core, group = channel.core, (request.queue, request.group, request.epoch)
    committed = leases.lease_commit(core, *group, request.commit) if request.commit else None
    return committed, leases.lease_claim(core, *group, request.messages, request.byte_count)


def _answered(call: Call[Any]) -> bool:
    # The channel closes at the first error: later calls have one, too, or no answer.
    return call.done and call.error is None
