"""Errors that end a query, whichever way it reads its queues."""

from __future__ import annotations

from harebell.base.errors import HarebellError
from harebell.client.errors import AMQPError, Fenced, NotFound
from harebell.spark.options.source_options import Options


class SourceError(HarebellError):
    """The query cannot continue; the text says why and what to do."""


class QueueGone(SourceError):
    """The queue does not exist, or was deleted."""


class GroupGone(SourceError):
    """The broker knows the queue, and no longer the lease group of the query."""


_NO_GROUP = "no lease group"
"""What the broker's answer begins with then."""
_LATER_EPOCH = "never began"
"""What the broker's answer has if its epoch of a group is an earlier one."""


def not_found(error: NotFound, options: Options, group: str) -> SourceError:
    """Return the error for an answer that the queue, or a group of it, does not exist."""
    if is_group(error):
        return GroupGone(group_gone(options.queue, group))
    return no_queue(options)


def is_group(error: AMQPError) -> bool:
    """True if an answer is that a queue has no lease group of a name."""
    return isinstance(error, NotFound) and _NO_GROUP in error.text


def is_older_state(error: AMQPError) -> bool:
    """True if an answer is that a group is not there, or not yet in the epoch of the query."""
    return is_group(error) or (isinstance(error, Fenced) and _LATER_EPOCH in error.text)


def fenced(error: Fenced, queue: str, group: str) -> SourceError:
    """Return the error for an answer that the epoch is not that of the group."""
    if is_older_state(error):
        return SourceError(
            f"the broker was restored to an older state, in which this query had not opened group "
            f"{group!r} on queue {queue!r} yet ({error.text}): start the query again, which says "
            "what is lost"
        )
    return SourceError(
        f"another query has taken over the lease of group {group!r} on queue {queue!r}, and this "
        f"one ends ({error.text}): two queries must not share a checkpoint or a group"
    )


def group_gone(queue: str, group: str) -> str:
    """Return the sentence for a lease group that the broker does not know any more."""
    return (
        f"the broker has no group {group!r} of queue {queue!r} any more: it was deleted (harebell "
        "leases release --forget), or was without claims for longer than a broker keeps a group. "
        "What it had claimed went back to the queue. Start the query again, which makes the group "
        "anew and says what is lost"
    )


def no_queue(options: Options) -> QueueGone:
    """Return the error for a queue that does not exist."""
    return QueueGone(
        f"there is no queue {options.queue!r} in the virtual host {options.url.vhost!r} at "
        f"{options.url.address}: declare it first"
    )
