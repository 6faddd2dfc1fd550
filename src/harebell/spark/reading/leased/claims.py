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
from harebell.wire.v09.lease import ClaimInfo


def claim_together(
    connection: BrokerConnection, requested: Sequence[tuple[LeasedReader, ClaimRequest]]
) -> None:
    """Make claims, and commit the claims before them, in one round trip and one commit of the disk.

    Args:
        connection: the connection of the readers.
        requested: the readers, and the claim that each needs.
    """
    if not requested:
        return
    calls: list[tuple[Call[int] | None, Call[ClaimInfo | None]]] = []
    try:
        channel = connection.opened()
        calls = [_sent(channel, ask) for _, ask in requested]
        for committed, claimed in calls:
            if committed is not None:
                channel.connection.finish(committed)
            channel.connection.finish(claimed)
    except ChannelClosed:
        # The reader of this call repeats it, and raises the error.
        connection.channel_is_over()
    except LOST:
        connection.lost()
        for reader, _ in requested:
            reader.forget_group()
        return
    for (reader, ask), (committed, claimed) in zip(requested, calls, strict=False):
        if committed is not None and _answered(committed):
            reader.committed(ask.commit)
        if _answered(claimed):
            reader.claimed(claimed.value())


def _sent(channel: Channel, ask: ClaimRequest) -> tuple[Call[int] | None, Call[ClaimInfo | None]]:
    core, of = channel.core, (ask.queue, ask.group, ask.epoch)
    committed = leases.lease_commit(core, *of, ask.commit) if ask.commit else None
    return committed, leases.lease_claim(core, *of, ask.messages, ask.byte_count)


def _answered(call: Call[Any]) -> bool:
    return call.done and call.error is None
