"""The table of strategies: which class reads a queue of a query.

A new query chooses by the option `delivery` and the type of the queue (`new_strategy`):

    broker           delivery                      stream           another queue
    Harebell         exactly-once (default)        PositionReader   LeasedReader
    Harebell         at-least-once, at-most-once   PositionReader   SpooledReader
    Harebell         peek                          PositionReader   PositionReader
    another broker   at-least-once (default),      SpooledReader    SpooledReader
                     at-most-once

A query that continues from a checkpoint keeps the class that wrote the offset of the queue
(`continued_strategy`). Each class is the answer to the whole life of a query: the reader factory
asks once per queue, when the query is made or when the queue joins it.
"""

from __future__ import annotations

from harebell.client.bulk import Span
from harebell.spark.options.offset_limits import EARLIEST, OffsetLimit
from harebell.spark.options.source_options import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    EXACTLY_ONCE,
    PEEK,
    OptionError,
    Options,
)
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.leased.leased_reader import LeasedReader
from harebell.spark.reading.offsets import (
    ClaimOffset,
    LogOffset,
    OffsetError,
    QueueOffset,
    SpoolOffset,
)
from harebell.spark.reading.positions.position_reader import STREAM, PositionReader
from harebell.spark.reading.queue_lookup import check_partition
from harebell.spark.reading.spooled.spooled_reader import SpooledReader

Strategy = type[SpooledReader] | type[PositionReader] | type[LeasedReader]

_NEW: dict[str | None, tuple[Strategy, Strategy]] = {
    None: (PositionReader, LeasedReader),
    EXACTLY_ONCE: (PositionReader, LeasedReader),
    AT_LEAST_ONCE: (PositionReader, SpooledReader),
    AT_MOST_ONCE: (PositionReader, SpooledReader),
    PEEK: (PositionReader, PositionReader),
}
"""By delivery, with Harebell: the strategy for a stream, and for a queue of another type."""

_CONTINUED: dict[type[QueueOffset], tuple[Strategy, tuple[str | None, ...], str]] = {
    SpoolOffset: (
        SpooledReader,
        (None, AT_LEAST_ONCE, AT_MOST_ONCE),
        "at-least-once or at-most-once",
    ),
    ClaimOffset: (LeasedReader, (None, EXACTLY_ONCE), "exactly-once"),
    LogOffset: (PositionReader, tuple(_NEW), "any delivery"),
}
"""By class of the offset: the strategy, and the deliveries that may continue it, also in words."""

_CONSUMING = (SpooledReader, LeasedReader)


def new_strategy(options: Options, kind: str) -> Strategy:
    """Return the strategy for a queue of Harebell that a query reads for the first time.

    Args:
        options: of the query, about this queue.
        kind: type of the queue.

    Raises:
        OptionError: an option does not go with the strategy.
        SourceError: the queue is no partition of a super stream.
    """
    check_partition(options, kind)
    of_stream, of_other = _NEW[options.delivery]
    strategy = of_stream if kind == STREAM else of_other
    if strategy in _CONSUMING:
        _check_unmatched(options, kind)
    if strategy is SpooledReader and _is_not_head(options.starting.of(options.queue)):
        raise OptionError(
            f"the option startingOffsets does not go with delivery={options.delivery} for "
            f"the {kind} queue {options.queue!r}, which is always read from its head: say earliest "
            "or nothing"
        )
    return strategy


def continued_strategy(options: Options, offset: QueueOffset) -> Strategy:
    """Return the strategy that wrote the offset of a checkpoint.

    Args:
        options: of the query, about this queue.
        offset: of the queue in the checkpoint.

    Raises:
        OffsetError: the options require another strategy.
    """
    strategy, deliveries, begun_with = _CONTINUED[type(offset)]
    if options.delivery not in deliveries:
        raise OffsetError(
            f"the option delivery is {options.delivery}, but the checkpoint was begun with "
            f"{begun_with} for queue {options.queue!r}: use that, or a new checkpoint"
        )
    if strategy is SpooledReader and options.where is not None:
        raise OffsetError(
            f"the checkpoint consumes queue {options.queue!r} over plain AMQP, which has no option "
            "where: filter in the query, or use a new checkpoint"
        )
    return strategy


def check_continued(options: Options, offset: ClaimOffset | LogOffset, span: Span) -> None:
    """Check that a queue of Harebell can still be read as its checkpoint was begun.

    Args:
        options: of the query, about this queue.
        offset: of the queue in the checkpoint.
        span: of the queue as it is now.

    Raises:
        OffsetError: the queue has another type now, or the option `delivery` requires another
            strategy.
        OptionError: an option does not go with the strategy.
    """
    leased, streamed = isinstance(offset, ClaimOffset), span.kind == STREAM
    # A stream has no leases, and the other types are read by position only with peek.
    consistent = leased != streamed or (not leased and options.delivery == PEEK)
    if not consistent and offset.generation != span.generation:
        raise OffsetError(
            f"queue {options.queue!r} was deleted and declared again since the checkpoint, and is "
            f"a {span.kind} queue now, which is read in another way: use a new checkpoint"
        )
    if not consistent and options.delivery is not None:
        raise OffsetError(
            f"the option delivery is {options.delivery}, but the checkpoint was begun with peek "
            f"for queue {options.queue!r}: use that, or a new checkpoint"
        )
    if leased:
        _check_unmatched(options, span.kind)


def check_plain(options: Options, product: str) -> None:
    """Check that a broker without Harebell's extensions supports the options.

    Args:
        options: of the query.
        product: name of the broker.

    Raises:
        SourceError: it does not.
    """
    pattern = "queuePattern" if options.super_stream is None else "superStream"
    for is_set, lack in (
        (
            options.delivery in (EXACTLY_ONCE, PEEK),
            f"cannot do delivery={options.delivery}, which needs Harebell's leases and bulk reads: "
            "use delivery=at-least-once",
        ),
        (
            options.where is not None,
            "has no filters: leave the option where out and filter in the query",
        ),
        (
            options.ordering_key is not None,
            "cannot be read by several tasks: leave partitionBy=key out, and one reads all keys in "
            "their order",
        ),
        (
            options.exchange is not None,
            "has no streams that can be read by position over AMQP: bind a queue to exchange "
            f"{options.exchange!r} and read it with the option queue",
        ),
        (
            options.dead_letters_of is not None,
            "does not tell over AMQP where dead letters of a queue go: name the queues with the "
            "option queues instead of deadLettersOf",
        ),
        (
            options.pattern is not None,
            "does not tell its queues over AMQP: name them with the option queues instead of "
            f"{pattern}",
        ),
        (
            any(_is_not_head(limit) for limit in options.starting.all),
            "has no positions over AMQP: leave the option startingOffsets out or say earliest, and "
            "a queue is read from its head",
        ),
    ):
        if is_set:
            raise SourceError(f"the broker at {options.url.address} ({product}) {lack}")


def _check_unmatched(options: Options, kind: str) -> None:
    """Check that a query that consumes says what happens to messages that it does not select.

    Raises:
        OptionError: it does not.
    """
    if options.where is not None and options.unmatched is None:
        raise OptionError(
            f"the option where selects some messages of the {kind} queue {options.queue!r}, and a "
            "query that consumes the queue acknowledges the others too: add unmatched=discard if "
            "they may be lost, or use delivery=peek"
        )


def _is_not_head(limit: OffsetLimit | None) -> bool:
    return limit is not None and limit.kind != EARLIEST
