"""Errors that end a query, whichever way it reads its queues."""

from __future__ import annotations

from harebell.base.errors import HarebellError
from harebell.spark.options.source_options import Options


class SourceError(HarebellError):
    """The query cannot continue; the text says why and what to do."""


class QueueGone(SourceError):
    """The queue does not exist, or was deleted."""


def no_queue(options: Options) -> QueueGone:
    """Return the error for a queue that does not exist."""
    return QueueGone(
        f"there is no queue {options.queue!r} in the virtual host {options.url.vhost!r} at "
        f"{options.url.address}: declare it first"
    )
