"""Say what a query will do with each queue when it is started again on its checkpoint.

Nothing is changed and no group is opened: opening one would fence a query that runs. Spark plans
the last micro-batch again if it is not in its commit log. See `leased_reader.py` for what follows
from claims that are open, committed or requeued.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from harebell.base.finding import BAD, GOOD, NOTE, Finding
from harebell.client import blocking
from harebell.client.bulk import Span
from harebell.client.errors import AMQPError
from harebell.spark.reading.checkpoint import last_batch, offsets_at
from harebell.spark.reading.offsets import ClaimOffset, LogOffset, QueueOffset
from harebell.wire.v09.history import NAME as HISTORY

GroupOf = Callable[[str, str], Mapping[str, Any] | None]
"""Returns what `leases.show` says of a group, by queue and name; None if there is none."""
_GONE = "lost: the queue is gone; declare it, and use a new checkpoint"
_NOT_FOUND = 404
_OTHER = (
    "lost: the queue was deleted and declared again since; failOnDataLoss=false begins with what "
    "is there"
)


def foresee(
    checkpoint: Path, connection: blocking.Connection, group_of: GroupOf
) -> Iterator[Finding]:
    """Yield what happens with each queue of a query.

    Args:
        checkpoint: the directory of the checkpoint, on this machine.
        connection: to the broker of the queues.
        group_of: asks for lease groups.

    Raises:
        OSError: the checkpoint cannot be read.
        AMQPError: the broker cannot be asked.
    """
    planned, done = last_batch(checkpoint, "offsets"), last_batch(checkpoint, "commits")
    if planned is None:
        text = f"{checkpoint} has no micro-batch: the query begins anew"
        yield Finding("checkpoint", NOTE, text)
        return
    repeated = done is None or done < planned
    before = dict(offsets_at(checkpoint, done)) if repeated and done is not None else {}
    what = f"micro-batch {planned} " + ("did not end and is repeated" if repeated else "has ended")
    yield Finding("checkpoint", GOOD, what)
    has_queues = False
    for queue, end in offsets_at(checkpoint, planned):
        has_queues = True
        start = before.get(queue) if repeated else end
        yield _queue(queue, start, end, connection, group_of)
    if not has_queues:
        yield Finding("queues", NOTE, "the checkpoint has no offsets of Harebell")


def _queue(
    queue: str,
    start: QueueOffset | None,
    end: QueueOffset,
    connection: blocking.Connection,
    group_of: GroupOf,
) -> Finding:
    """Return what happens with one queue.

    Args:
        queue: its name.
        start: where the micro-batch that is planned again begins; None for the first one.
        end: where the last micro-batch ends.
        connection: to the broker.
        group_of: asks for lease groups.
    """
    if not isinstance(end, ClaimOffset | LogOffset):
        text = "comes again: plain AMQP, so what was not acknowledged is delivered again"
        return Finding(queue or "queue", NOTE, text)
    try:
        span = connection.channel().span(queue)
    except AMQPError as error:
        if getattr(error, "code", 0) != _NOT_FOUND:
            raise
        return Finding(queue, BAD, _GONE)
    if span.generation != end.generation:
        return Finding(queue, BAD, _OTHER)
    if isinstance(end, LogOffset):
        position = start.position if isinstance(start, LogOffset) else None
        return _positions(queue, position, end, span, end.shared(_eras(connection, queue)))
    first = start.claim if isinstance(start, ClaimOffset) else 0
    group = group_of(queue, end.group)
    shared = 0
    if group is not None:
        shared = end.shared(_eras(connection, queue, end.group), group["last"])
    return _claims(queue, first, end, group, shared, span.messages)


def _eras(connection: blocking.Connection, queue: str, group: str = "") -> str:
    """Return the eras of a queue's positions or a group's claims; "" for an older broker."""
    if HISTORY not in connection.extensions:
        return ""
    return connection.channel().history(queue, group).eras


def _positions(queue: str, start: int | None, end: LogOffset, span: Span, shared: int) -> Finding:
    """Return what happens with a queue that is read by position.

    Args:
        queue: its name.
        start: where the micro-batch that is planned again begins, if one is.
        end: where the last micro-batch ends.
        span: what the broker has.
        shared: how far it has what the checkpoint has read.
    """
    shared = min(shared, span.end)
    if shared < end.position:
        text = (
            f"lost: {end.position - shared} positions from {shared} on were read and are not "
            f"there: its data is of an older date, and {span.end - shared} new messages took their "
            "places; the query fails unless failOnDataLoss=false, which goes on with these"
        )
        return Finding(queue, BAD, text)
    begin = end.position if start is None else start
    if begin < span.first:
        text = f"lost: positions {begin} to {span.first - 1} are gone, as by retention"
        return Finding(queue, BAD, text)
    repeated = _count(end.position - begin, "position")
    text = f"goes on: {repeated} of the last micro-batch, then {span.end - end.position} new ones"
    return Finding(queue, GOOD, text)


def _claims(
    queue: str,
    start: int,
    end: ClaimOffset,
    group: Mapping[str, Any] | None,
    shared: int,
    there: int,
) -> Finding:
    """Return what happens with a queue that is read by claims.

    Args:
        queue: its name.
        start: the last claim before the micro-batch that is planned again.
        end: where the last micro-batch ends.
        group: what the broker says of it.
        shared: the last claim of the checkpoint that it has made, too.
        there: messages in the queue.
    """
    if group is None or shared < end.claim:
        made = "no such group" if group is None else f"claims up to {shared} only"
        text = (
            f"comes again: the broker has {made} of {end.group!r}, and the checkpoint has "
            f"{end.claim}; the group was forgotten, or the broker's data is of an older date. "
            f"{_count(there, 'message')} are in the queue"
        )
        return Finding(queue, BAD, text)
    claims = {claim["number"]: claim["messages"] for claim in group["open"]}
    committed = group["committed"]
    missing = [n for n in range(committed + 1, end.claim + 1) if n not in claims]
    if missing:
        text = (
            f"comes again: {_count(len(missing), 'claim')} of group {end.group!r} went back to the "
            f"queue ({_listed(missing)}), {sum(n <= start for n in missing)} of them processed; "
            "the query fails unless failOnDataLoss=false"
        )
        return Finding(queue, BAD, text)
    later = range(end.claim + 1, committed + 1)
    if later:
        text = (
            f"lost, unless the sink has them: {_count(len(later), 'claim')} of group {end.group!r} "
            f"({_listed(later)}) were acknowledged after this checkpoint, which is older than the "
            "broker's data; with failOnDataLoss=false the query goes on behind them. "
            f"{_count(there, 'message')} are in the queue"
        )
        return Finding(queue, BAD, text)
    parts = []
    for what, some in (
        ("acknowledged, as Spark has processed them", [n for n in claims if n <= start]),
        ("read again for the last micro-batch", [n for n in claims if start < n <= end.claim]),
        ("claimed and not planned yet", [n for n in claims if n > end.claim]),
    ):
        if some:
            parts.append(f"{_count(sum(claims[n] for n in some), 'message')} are {what}")
    rest = there - sum(claims.values())
    holder = f"; '{group['holder']}' holds the group now" if group["holder"] else ""
    text = "; ".join([*parts, f"then {_count(rest, 'message')} that are in the queue{holder}"])
    return Finding(queue, GOOD, f"goes on: {text}")


def _listed(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
