"""Which queues a query reads: those that it names, or those that match its pattern."""

from __future__ import annotations

import re

from harebell.spark.intake import SourceError
from harebell.spark.link import Link
from harebell.spark.options import Options


def queues(link: Link, options: Options) -> tuple[str, ...]:
    """The queues that a query reads.

    Raises:
        SourceError: the pattern matches none.
    """
    if options.pattern is None:
        return options.queues
    pattern = re.compile(options.pattern)
    found = tuple(name for name in _all(link) if pattern.fullmatch(name))
    if not found:
        raise SourceError(
            f"the option queuePattern, {options.pattern!r}, matches no queue in the virtual host "
            f"{options.url.vhost!r} at {options.url.address}"
        )
    return found


def _all(link: Link) -> list[str]:
    """Every queue that may be read."""
    names, more = link.call(lambda channel: channel.queue_names())
    while more:
        page, more = link.call(lambda channel: channel.queue_names(names[-1]))
        names += page
    return names
