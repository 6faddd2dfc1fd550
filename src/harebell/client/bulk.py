"""Read ranges of a queue as Arrow record batches (Harebell's own class `bulk`).

A batch is one encapsulated record batch of Arrow's IPC format, as bytes: pyarrow reads it without
copying, `pa.ipc.read_record_batch(pa.py_buffer(batch.data), schema)`. The schema follows from the
columns; `schema_of` gives it as the message that an Arrow stream begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import Got
from harebell.wire.arrow.columns import COLUMNS, selection
from harebell.wire.arrow.encode import schema_message
from harebell.wire.v09 import bulk as m
from harebell.wire.v09 import methods
from harebell.wire.v09.method import Method

T = TypeVar("T")

ALL_COLUMNS = tuple(COLUMNS)
"""Every column that a message has."""


@dataclass(frozen=True)
class Span:
    """The position range of a queue.

    Args:
        generation: identity of the log; it changes if the queue is deleted and declared again.
        kind: classic, quorum, stream, priority or grouped.
        first: the first position with a message; `end` without one.
        end: the position after the last.
        messages: number of messages, unacknowledged ones included.
        octets: their bytes on disk, as far as the broker knows.
        position: the first position of the requested time, or later.
    """

    generation: str
    kind: str
    first: int
    end: int
    messages: int
    octets: int
    position: int


@dataclass(frozen=True)
class ArrowBatch:
    """A batch of messages.

    Args:
        data: an encapsulated record batch of Arrow's IPC format.
        rows: number of messages.
        next: the position to continue at.
        lost: positions that were skipped because they cannot be read any more.
    """

    data: bytes
    rows: int
    next: int
    lost: int


def schema_of(columns: Iterable[str]) -> bytes:
    """Return the schema of batches with these columns, as the first message of an Arrow stream.

    Raises:
        ValueError: messages have no such column.
    """
    return schema_message(selection(",".join(columns)).schema())


class BulkVerbs:
    """The verbs of class bulk; see `harebell.client.protocol.verbs`."""

    def call(
        self, method: Method, reply: tuple[type[Method], ...], convert: Callable[[Any], T]
    ) -> Call[T]:
        """Send a method and expect one of these replies."""
        raise NotImplementedError

    def need(self, extension: str) -> None:
        """Check that the broker supports a protocol extension."""
        raise NotImplementedError

    def span(self, queue: str, *, time: int = 0) -> Call[Span]:
        """Return the position range of a queue.

        Args:
            queue: the name of a queue or stream.
            time: milliseconds since 1970; `Span.position` is the first message of then or later.
        """
        self.need(m.NAME)
        return self.call(methods.BulkSpan(queue=queue, time=time), (methods.BulkSpanOk,), _span)

    def read_arrow(
        self,
        queue: str,
        first: int,
        end: int,
        *,
        columns: Iterable[str] = ALL_COLUMNS,
        generation: str = "",
        rows: int = 8192,
        octets: int = 0,
        compression: str = "",
        routing_key: str | None = None,
        routing_key_prefix: str | None = None,
        since: int = 0,
        until: int = 0,
        where: str | None = None,
        skip_lost: bool = False,
        group: str = "",
        epoch: int = 0,
        claim: int = 0,
    ) -> Call[ArrowBatch]:
        """Read messages without consuming them, or those of a claim.

        Args:
            queue: the name of a queue or stream.
            first: the first position.
            end: the position after the last.
            columns: their names; `properties.message_id` is a field of the column `properties`.
            generation: of the queue, as in `Span`; "" for any.
            rows: maximum number of rows; the broker's limit is 16,384.
            octets: maximum bytes of messages, at most 2 MiB (default). One may be larger.
            compression: "lz4", if the broker has the library.
            routing_key: only messages with this routing key.
            routing_key_prefix: only those whose routing key begins with it.
            since: only those of this time or later, in milliseconds since 1970.
            until: only those of an earlier time.
            where: only those for which this condition of the filter language is true.
            skip_lost: skip messages that retention or damage has removed, and count them.
            group: the lease group whose claim is read; "" reads no claim.
            epoch: of the group.
            claim: the number of the claim; all of it is read when `end` is 0.

        Raises:
            ChannelClosed: `GenerationChanged`, `RangeGone` or `RecordDamaged`.
        """
        self.need(m.NAME)
        method = methods.BulkRead(
            queue=queue,
            generation=generation,
            group=group,
            epoch=epoch,
            claim=claim,
            first=first,
            end=end,
            columns=",".join(columns).encode(),
            rows=rows,
            octets=octets,
            compression=compression,
            filter=_filter(routing_key, routing_key_prefix, since, until, where),
            skip_lost=skip_lost,
        )
        return self.call(method, (methods.BulkBatch,), _batch)

    def queue_names(self, after: str = "") -> Call[tuple[list[str], bool]]:
        """Return the names of readable queues after a name, sorted; and whether there are more."""
        self.need(m.NAME)
        return self.call(methods.BulkQueues(after=after), (methods.BulkQueuesOk,), _names)

    def dead_letter_queues(self, queue: str) -> Call[tuple[list[str], bool]]:
        """Return the names of readable queues that get dead letters of a queue, as far as they fit.

        Raises:
            PreconditionFailed: there are none; the text says what is missing.
        """
        self.need(m.NAME)
        return self.call(methods.BulkLetters(queue=queue), (methods.BulkQueuesOk,), _names)


def _names(reply: methods.BulkQueuesOk) -> tuple[list[str], bool]:
    return m.decode_names(reply.names), reply.more


def _span(reply: methods.BulkSpanOk) -> Span:
    return Span(
        reply.generation,
        reply.kind,
        reply.first,
        reply.end,
        reply.messages,
        reply.octets,
        reply.position,
    )


def _filter(
    key: str | None, prefix: str | None, since: int, until: int, where: str | None
) -> dict[str, str | int]:
    conditions: dict[str, str | int | None] = {"routing-key": key, "routing-key-prefix": prefix}
    conditions |= {"since": since or None, "until": until or None, "where": where}
    return {name: value for name, value in conditions.items() if value is not None}


def _batch(reply: Got) -> ArrowBatch:
    method = reply.method
    assert isinstance(method, methods.BulkBatch), "what answers bulk.read"
    return ArrowBatch(reply.body, method.rows, method.next, method.lost)
