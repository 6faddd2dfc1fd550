"""A range of a queue, batch after batch, with the next ones under way already."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from harebell.base.limits import BULK_READS_AHEAD
from harebell.client.bulk import ALL_COLUMNS, ArrowBatch
from harebell.client.protocol.channel import CoreChannel

_SPARSEST = 256
"""Positions for each message, as a priority queue has them."""


class BulkChannel(Protocol):
    """What a bulk read uses of a channel."""

    core: CoreChannel
    connection: Any


def arrow_batches(
    channel: BulkChannel,
    queue: str,
    first: int,
    end: int,
    *,
    columns: Iterable[str] = ALL_COLUMNS,
    rows: int = 8192,
    ahead: int = BULK_READS_AHEAD,
    **options: Any,
) -> Iterator[ArrowBatch]:
    """Read a range in its order; see `read_arrow`, which has the other options.

    The range is cut into pieces, and several are asked for at a time. It ends
    early where the queue ends. Batches without rows are left out, unless something was lost.

    Args:
        channel: where to read; it should have nothing else to do.
        queue: the queue.
        first: the first position.
        end: the position behind the last.
        columns: their names.
        rows: most rows of a batch.
        ahead: how many reads are under way.
        options: of `read_arrow`.
    """
    names = tuple(columns)
    step = rows = max(rows, 1)
    pieces: deque[tuple[int, Any]] = deque()

    def ask(low: int, high: int) -> tuple[int, Any]:
        return high, channel.core.read_arrow(queue, low, high, columns=names, rows=rows, **options)

    channel.connection.usable()
    asked = here = first
    while asked < end or pieces:
        while asked < end and len(pieces) < max(ahead, 1):
            pieces.append(ask(asked, min(asked + step, end)))
            asked = min(asked + step, end)
        high, call = pieces.popleft()
        batch: ArrowBatch = channel.connection.finish(call)
        if batch.rows or batch.lost:
            yield batch
        elif batch.next <= here:
            # Nothing is there and nothing was passed over: the queue ends here.
            break
        # Where many positions have no message a piece has more of them.
        step = min(max(rows, (batch.next - here) * rows // max(batch.rows, 1)), rows * _SPARSEST)
        if batch.next < high:
            pieces.appendleft(ask(batch.next, high))
        here = batch.next
    for _, call in pieces:
        channel.connection.finish(call)
