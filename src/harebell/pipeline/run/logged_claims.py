"""Commit the claims of micro-batches that Spark has finished, when a pipeline has ended.

A source commits a claim when Spark asks for what comes after it, because Spark tells it no other
way that a micro-batch is in its commit log. With a trigger of an hour that is an hour later. A
pipeline that was stopped meanwhile would leave the claim open, and when its lease is over the
messages would come again, although the sinks have them. The checkpoint says it at once:

    <checkpoint>/commits/7     micro-batch 7 is finished
    <checkpoint>/offsets/7     two lines, then the offsets where it ended, a line for each source
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

from harebell.base.errors import HarebellError
from harebell.base.limits import PIPELINE_SETTLE_SECONDS
from harebell.client import blocking
from harebell.client.blocking import Channel
from harebell.client.errors import ChannelClosed
from harebell.client.protocol.leases import Lease
from harebell.pipeline.run.frames import options_of
from harebell.pipeline.spec.description import Description
from harebell.spark.options.source_options import parse
from harebell.spark.reading.offsets import ClaimOffset, OffsetError, offsets_of

_LOG = logging.getLogger("harebell.spark")
_HEAD_LINES = 2


def commit_logged_claims(pipeline: Description) -> None:
    """Commit the claims up to the last micro-batch that Spark has finished.

    Nothing depends on it but messages that would come again later, so errors are only logged.

    Args:
        pipeline: whose query has ended, and whose checkpoint is still locked.
    """
    _settle(pipeline, "commits", _commit)


def forget_planned_claims(pipeline: Description) -> None:
    """Give back the claims of a checkpoint that is about to be removed, and remove their groups.

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
    numbers = [int(each.name) for each in (checkpoint / log).glob("*") if each.name.isdigit()]
    if not numbers:
        return
    lines = (checkpoint / "offsets" / str(max(numbers))).read_text().splitlines()
    for line in lines[_HEAD_LINES:]:
        try:
            offsets = offsets_of(json.loads(line))
        except (ValueError, OffsetError):
            continue  # of a source of another format
        for queue, offset in offsets.items():
            if isinstance(offset, ClaimOffset):
                yield queue, offset


def _settle(
    pipeline: Description, log: str, settle: Callable[[Channel, str, ClaimOffset, Lease], None]
) -> None:
    try:
        claims = list(claims_of(pipeline.checkpoint, log))
        if not claims:
            return
        options = [parse(options_of(source)) for source in pipeline.sources]
        if len({(each.url.address, each.url.vhost) for each in options}) > 1:
            # The offsets do not say which broker they belong to; the next start commits them.
            return
        timeout = options[0].lease_timeout
        with blocking.connect(options[0].url, call_timeout=PIPELINE_SETTLE_SECONDS) as connection:
            for queue, offset in claims:
                try:
                    channel = connection.channel(confirms=False)
                    lease = channel.lease_open(queue, offset.group, timeout=timeout)
                    if lease.generation == offset.generation:
                        settle(channel, queue, offset, lease)
                except ChannelClosed as error:
                    _LOG.info("group %r on queue %r: %s", offset.group, queue, error)
    except (HarebellError, OSError) as error:
        _LOG.info("%s: its claims stay until it is started again: %s", pipeline.name, error)


def _commit(channel: Channel, queue: str, offset: ClaimOffset, lease: Lease) -> None:
    done = [claim.number for claim in lease.claims if claim.number <= offset.claim]
    if done:
        channel.lease_commit(queue, offset.group, lease.epoch, max(done))
    channel.lease_close(queue, offset.group, lease.epoch)


def _forget(channel: Channel, queue: str, offset: ClaimOffset, lease: Lease) -> None:
    channel.lease_close(queue, offset.group, lease.epoch, forget=True)
