"""Read a range of a queue in batches, with the next requests sent ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from harebell.client.bulk import ALL_COLUMNS, ArrowBatch
from harebell.client.limits import BULK_READS_AHEAD
from harebell.client.protocol.v09.channel import CoreChannel

_SPARSEST = 256
"""Maximum positions per message in a piece: priority queues have gaps."""


class BulkChannel(Protocol):
    """The channel methods that a bulk read uses."""

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

    The range is split into pieces, and several requests are outstanding at a time. It ends early at
    the end of the queue. Batches without rows are left out, unless messages were lost.

    Args:
        channel: the channel; it should have no other use.
        queue: the name of a queue or stream.
        first: the first position.
        end: the position after the last.
        columns: their names.
        rows: maximum number of rows of a batch.
        ahead: number of outstanding requests.
        options: of `read_arrow`.
    """
    names = tuple(columns)
    step = rows = max(rows, 1)
    pieces: deque[tuple[int, Any]] = deque()

    def ask(low: int, high: int) -> tuple[int, Any]:
        return high, channel.core.read_arrow(queue, low, high, columns=names, rows=rows, **options)

    channel.connection.usable()
    requested = position = first
    while requested < end or pieces:
        while requested < end and len(pieces) < max(ahead, 1):
            pieces.append(ask(requested, min(requested + step, end)))
            requested = min(requested + step, end)
        high, call = pieces.popleft()
        batch: ArrowBatch = channel.connection.finish(call)
        if batch.rows or batch.lost:
            yield batch
        elif batch.next <= position:
            # No rows and nothing skipped: this is the end of the queue.
            break
        # Many positions have no message: make the pieces larger.
        sparse = (batch.next - position) * rows // max(batch.rows, 1)
        step = min(max(rows, sparse), rows * _SPARSEST)
        if batch.next < high:
            # The limit of bytes ended the batch: its rest comes before the next piece.
            pieces.appendleft(ask(batch.next, high))
        position = batch.next
    # The answers are on their way: the next request of the channel must not get them.
    for _, call in pieces:
        channel.connection.finish(call)
