"""Commit the claims of micro-batches that Spark has finished, when a pipeline has ended.

A source commits a claim when Spark asks for what comes after it, because Spark tells it no other
way that a micro-batch is in its commit log. With a trigger of an hour that is an hour later. A
pipeline that was stopped meanwhile would leave the claim open, and when its lease is over the
messages would come again, although the sinks have them. The checkpoint says it at once.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from harebell.base.errors import HarebellError
from harebell.client import blocking
from harebell.client.blocking import Channel
from harebell.client.errors import ChannelClosed
from harebell.client.protocol.leases import Lease
from harebell.pipeline.limits import PIPELINE_SETTLE_SECONDS
from harebell.pipeline.spec.description import Description
from harebell.spark.options.source_options import parse
from harebell.spark.reading.checkpoint import last_batch, offsets_at
from harebell.spark.reading.offsets import ClaimOffset
from harebell.wire.v09.history import NAME as HISTORY

_LOG = logging.getLogger("harebell.spark")


def commit_logged_claims(pipeline: Description) -> None:
    """Commit the claims up to the last micro-batch that Spark has finished.

    Nothing depends on it but messages that would come again later, so errors are only logged.

    Args:
        pipeline: whose query has ended, and whose checkpoint is still locked.
    """
    _settle(pipeline, "commits", _commit)


def forget_planned_claims(pipeline: Description) -> None:
    """Requeue the claims of a checkpoint that is about to be removed, and remove their groups.

    Args:
        pipeline: whose checkpoint is locked, and has no finished micro-batch.
    """
    _settle(pipeline, "offsets", _forget)


def claims_of(checkpoint: Path, log: str) -> Iterator[tuple[str, ClaimOffset]]:
    """Yield the queues that are read by claims, and their last claims.

    Args:
        checkpoint: of the pipeline.
        log: `commits` for what is finished, `offsets` for what was planned.
    """
    last = last_batch(checkpoint, log)
    for queue, offset in () if last is None else offsets_at(checkpoint, last):
        if isinstance(offset, ClaimOffset):
            yield queue, offset


def _settle(
    pipeline: Description, log: str, settle: Callable[[Channel, str, ClaimOffset, Lease], None]
) -> None:
    try:
        claims = list(claims_of(pipeline.checkpoint, log))
        if not claims:
            return
        options = [parse(source.options) for source in pipeline.sources]
        if len({(each.url.address, each.url.vhost) for each in options}) > 1:
            # The offsets do not say which broker they belong to; the next start commits them.
            return
        timeout = options[0].lease_timeout
        with blocking.connect(options[0].url, call_timeout=PIPELINE_SETTLE_SECONDS) as connection:
            for queue, offset in claims:
                try:
                    channel = connection.channel(confirms=False)
                    # This fences the query, which has ended: its connection may be open a little
                    # longer.
                    lease = channel.lease_open(queue, offset.group, timeout=timeout)
                    if lease.generation == offset.generation:
                        eras = ""
                        if HISTORY in connection.extensions:
                            eras = channel.history(queue, offset.group).eras
                        # Not the claims that a restored broker has made under the same numbers.
                        done = offset.shared(eras, lease.last)
                        settle(channel, queue, replace(offset, claim=done), lease)
                # The queue is gone, for example. Such an error closes the channel, and each queue
                # has one of its own: the others are settled all the same.
                except ChannelClosed as error:
                    _LOG.info("group %r on queue %r: %s", offset.group, queue, error)
    except (HarebellError, OSError) as error:
        _LOG.info("%s: its claims stay until it is started again: %s", pipeline.name, error)


def _commit(channel: Channel, queue: str, offset: ClaimOffset, lease: Lease) -> None:
    done = [claim.number for claim in lease.claims if claim.number <= offset.claim]
    if done:
        channel.lease_commit(queue, offset.group, lease.epoch, max(done))
    # Open claims stay: Spark plans their micro-batch again at the next start.
    channel.lease_close(queue, offset.group, lease.epoch)


def _forget(channel: Channel, queue: str, offset: ClaimOffset, lease: Lease) -> None:
    channel.lease_close(queue, offset.group, lease.epoch, forget=True)
