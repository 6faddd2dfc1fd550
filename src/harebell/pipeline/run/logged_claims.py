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
from collections.abc import Iterator
from pathlib import Path

from harebell.base.errors import HarebellError
from harebell.base.limits import PIPELINE_SETTLE_SECONDS
from harebell.client import blocking
from harebell.client.errors import ChannelClosed
from harebell.client.url import URL
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
    try:
        claims = list(finished_claims(pipeline.checkpoint))
        if not claims:
            return
        options = [parse(options_of(source)) for source in pipeline.sources]
        if len({(each.url.address, each.url.vhost) for each in options}) > 1:
            # The offsets do not say which broker they belong to; the next start commits them.
            return
        _commit(options[0].url, claims, options[0].lease_timeout)
    except (HarebellError, OSError) as error:
        _LOG.info("%s: its claims stay until it is started again: %s", pipeline.name, error)


def finished_claims(checkpoint: Path) -> Iterator[tuple[str, ClaimOffset]]:
    """Yield the queues of the last finished micro-batch that are read by claims, and the claims."""
    numbers = [int(each.name) for each in (checkpoint / "commits").glob("*") if each.name.isdigit()]
    if not numbers:
        return
    lines = (checkpoint / "offsets" / str(max(numbers))).read_text().splitlines()
    for line in lines[_HEAD_LINES:]:
        try:
            found = json.loads(line)
            offsets = offsets_of(found)
        except (ValueError, OffsetError):
            continue  # of a source of another format
        for queue, offset in offsets.items():
            if isinstance(offset, ClaimOffset):
                yield queue, offset


def _commit(url: URL, claims: list[tuple[str, ClaimOffset]], timeout: float) -> None:
    with blocking.connect(url, call_timeout=PIPELINE_SETTLE_SECONDS) as connection:
        for queue, offset in claims:
            try:
                channel = connection.channel(confirms=False)
                lease = channel.lease_open(queue, offset.group, timeout=timeout)
                done = [claim.number for claim in lease.claims if claim.number <= offset.claim]
                if done and lease.generation == offset.generation:
                    channel.lease_commit(queue, offset.group, lease.epoch, max(done))
                channel.lease_close(queue, offset.group, lease.epoch)
            except ChannelClosed as error:
                _LOG.info("group %r on queue %r: %s", offset.group, queue, error)
