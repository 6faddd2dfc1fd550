"""Find the queues of a query: by name, or by pattern."""

from __future__ import annotations

import re
from functools import partial

from harebell.client.blocking import Channel
from harebell.spark.options.source_options import Options
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.queue_consumer import SourceError


def queues(connection: BrokerConnection, options: Options, *, some: bool = True) -> tuple[str, ...]:
    """Return the queues that the query reads.

    Args:
        connection: the connection.
        options: contain the names or the pattern.
        some: whether at least one queue must exist.

    Raises:
        SourceError: the pattern matches no queue.
    """
    if options.pattern is None:
        return options.queues
    pattern = re.compile(options.pattern)
    found = tuple(name for name in _all(connection) if pattern.fullmatch(name))
    if some and not found and options.super_stream is not None:
        raise SourceError(
            f"the option superStream, {options.super_stream!r}, is no super stream in the virtual "
            f"host {options.url.vhost!r} at {options.url.address}: there is no queue "
            f"'{options.super_stream}-0'; `harebell streams add-super` makes one"
        )
    if some and not found:
        raise SourceError(
            f"the option queuePattern, {options.pattern!r}, matches no queue in the virtual host "
            f"{options.url.vhost!r} at {options.url.address}"
        )
    return found


def check_partition(options: Options, kind: str) -> None:
    """Check that a partition of a super stream is a stream.

    Raises:
        SourceError: it is a queue of another type, which happens to have such a name.
    """
    if options.super_stream is not None and kind != "stream":
        raise SourceError(
            f"the option superStream, {options.super_stream!r}, has a partition "
            f"{options.queue!r} that is a {kind} queue and no stream: name the streams with the "
            "option queues"
        )


def _all(connection: BrokerConnection) -> list[str]:
    """Return all queues that the user may read."""
    names: list[str] = []
    more = True
    while more:
        ask = partial(Channel.queue_names, after=names[-1] if names else "")
        page, more = connection.call(ask)
        names += page
    return names
