"""Find the queues of a query: by name, by pattern, or as those of dead letters."""

from __future__ import annotations

import re
from functools import partial

from harebell.client.blocking import Channel
from harebell.client.errors import AccessRefused, NotFound, PreconditionFailed
from harebell.spark.options.source_options import Options
from harebell.spark.reading.broker_connection import BrokerConnection
from harebell.spark.reading.errors import SourceError, no_queue


def find_queues(
    connection: BrokerConnection, options: Options, *, some: bool = True
) -> tuple[str, ...]:
    """Return the queues that the query reads.

    Args:
        connection: where the names are looked up.
        options: contain the names or the pattern.
        some: whether at least one queue must exist.

    Raises:
        SourceError: the pattern matches no queue, or dead letters go to none.
    """
    if options.dead_letters_of is not None:
        return _of_dead_letters(connection, options, options.dead_letters_of, some=some)
    if options.pattern is None:
        return options.queues
    pattern = re.compile(options.pattern)
    names = tuple(name for name in _all_queues(connection) if pattern.fullmatch(name))
    if some and not names and options.super_stream is not None:
        raise SourceError(
            f"the option superStream, {options.super_stream!r}, is no super stream in the virtual "
            f"host {options.url.vhost!r} at {options.url.address}: there is no queue "
            f"'{options.super_stream}-0'; `harebell streams add-super` makes one"
        )
    if some and not names:
        raise SourceError(
            f"the option queuePattern, {options.pattern!r}, matches no queue in the virtual host "
            f"{options.url.vhost!r} at {options.url.address}"
        )
    return names


def _of_dead_letters(
    connection: BrokerConnection, options: Options, queue: str, *, some: bool
) -> tuple[str, ...]:
    """Return the queues that dead letters of a queue go to."""
    try:
        names, _ = connection.call(partial(Channel.dead_letter_queues, queue=queue))
    except NotFound as error:
        if not some:
            return ()
        raise no_queue(options.about(queue)) from error
    except (PreconditionFailed, AccessRefused) as error:
        if not some:
            return ()
        raise SourceError(f"the option deadLettersOf, {queue!r}: {error.text}") from error
    return tuple(names)


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


def _all_queues(connection: BrokerConnection) -> list[str]:
    """Return all queues that the user may read."""
    names: list[str] = []
    more = True
    while more:
        ask = partial(Channel.queue_names, after=names[-1] if names else "")
        page, more = connection.call(ask)
        names += page
    return names
