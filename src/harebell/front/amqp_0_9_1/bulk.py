"""The class bulk, Harebell's own: ranges of a queue's log as Arrow record batches.

Reads wait: a connection is served a few of them per turn, in order, while there is space in its
output. So no other connection waits long, and the unread output of a slow reader stays small.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import lru_cache
from struct import Struct
from typing import TYPE_CHECKING, Any

from harebell.base.body_frames import ScatteredFrames
from harebell.base.errors import ErrorKind, ProtocolError, Refusal
from harebell.base.limits import FRAME_OVERHEAD_BYTES
from harebell.base.message import FAMILY_09, Message, Properties
from harebell.front.amqp_0_9_1.bulk_filter import MessageTest, repeatable_filter
from harebell.front.amqp_0_9_1.queue import find_readable
from harebell.front.convert.dispatch import converted
from harebell.front.limits import (
    BULK_BYTES,
    BULK_READS_PER_TURN,
    BULK_READS_WAITING,
    BULK_ROWS,
    BULK_SCAN_BYTES,
    OUTPUT_HIGH_BYTES,
)
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.limits import LONG_BODY_BYTES
from harebell.model.filter.errors import FilterError
from harebell.model.resource import precondition, rendered
from harebell.wire.arrow.columns import ArrowSelection, selection
from harebell.wire.arrow.encode import compressor, record_batch_parts
from harebell.wire.v09.bulk import CLASS, READ
from harebell.wire.v09.frames import HEADER, METHOD
from harebell.wire.v09.header_texts import count_of, headers_of, json_of
from harebell.wire.v09.methods import BulkBatch, BulkRead, BulkSpan, BulkSpanOk

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel
    from harebell.front.amqp_0_9_1.connection import Connection
    from harebell.model.queue.contract import Queue

_NO_PROPERTIES = Properties(b"\0\0")
_HEADER = Struct(">HHQH")
"""A content header: the class, a weight of zero, the size of the body, and no properties."""
_KEY = "routing-key"
_PREFIX = "routing-key-prefix"
_SINCE = "since"
_UNTIL = "until"
_WHERE = "where"
_FILTERS = (_KEY, _PREFIX, _SINCE, _UNTIL, _WHERE)
_LAST = 2**62
"""Positions and times stay below this."""


def span(channel: Channel, method: BulkSpan) -> None:
    """bulk.span: return the positions of a queue."""
    queue = find_readable(channel, method.queue)
    span = queue.span(min(method.time, _LAST))
    reply = BulkSpanOk(
        generation=queue.identity,
        kind=queue.kind,
        first=span.first,
        end=span.end,
        messages=span.messages,
        octets=span.byte_count,
        position=span.position,
    )
    channel.connection.send(channel.number, reply)


def read(channel: Channel, method: BulkRead) -> None:
    """bulk.read: answered in order with other reads."""
    connection = channel.connection
    if connection.bulk is None:
        connection.bulk = Reads(connection)
    connection.bulk.add(channel, method)


class Reads:
    """The pending bulk reads of one connection.

    Args:
        connection: where the answers go.
    """

    __slots__ = ("_connection", "_waiting")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._waiting: deque[tuple[Channel, BulkRead]] = deque()

    def add(self, channel: Channel, method: BulkRead) -> None:
        """Add a read.

        Raises:
            Refusal: too many reads are pending.
        """
        if len(self._waiting) >= BULK_READS_WAITING:
            raise precondition(
                f"{len(self._waiting)} bulk reads of this connection wait already, which is the "
                "most that may"
            )
        self._waiting.append((channel, method))
        # The first is answered at once. Behind others it waits, as answers have no number.
        if len(self._waiting) == 1:
            self.serve()
        else:
            self._connection.ask_for_turn()

    def serve(self) -> None:
        """Answer some reads, in order."""
        connection = self._connection
        for _ in range(BULK_READS_PER_TURN):
            if not self._waiting or connection.out.size >= OUTPUT_HIGH_BYTES:
                break
            if connection.congested or connection.closing:
                break
            channel, method = self._waiting.popleft()
            if connection.channels.get(channel.number) is not channel:
                # The channel was closed meanwhile: no answer is expected.
                continue
            try:
                _answer(channel, method)
            except (Refusal, ProtocolError) as error:
                connection.channel_caught(channel, error, CLASS, READ)
            if _WHERE in method.filter:
                # It has done the work of a turn.
                break
        if self._waiting:
            connection.ask_for_turn()


def _answer(channel: Channel, method: BulkRead) -> None:
    """Answer a read.

    Raises:
        Refusal: the read is invalid.
    """
    queue = find_readable(channel, method.queue)
    _check_generation(queue, method.generation)
    resource = rendered("queue", queue.name, queue.vhost)
    whole = method.group and not method.end
    if (method.first > method.end and not whole) or method.end > _LAST:
        raise precondition(
            f"positions {method.first} to {method.end} of {resource} are no range: the first "
            "position and the one behind the last are asked for"
        )
    try:
        selected = _selection(method.columns)
        compress = compressor(method.compression)
        builder = BatchBuilder(
            selected.columns, selected.fields, queue.name, headers_of, json_of, count_of, _basic
        )
    except ValueError as error:
        raise precondition(str(error)) from error
    builder.skip = method.skip_lost
    builder.limit(
        min(method.rows or BULK_ROWS, BULK_ROWS),
        min(method.octets or BULK_BYTES, BULK_BYTES),
        # A filter that selects nothing must not read a whole log in one turn.
        BULK_SCAN_BYTES,
    )
    try:
        _filter(builder, method.filter)
        follows = _append_to(channel, queue, method, builder)
    except FilterError as error:
        raise precondition(f"the filter '{_WHERE}' is invalid: {error}") from error
    # Rows before a damaged message are answered; the next read begins at it and fails.
    if builder.bad >= 0 and not builder.rows:
        raise Refusal(
            ErrorKind.RECORD_DAMAGED, f"the message at position {follows} of {resource} is damaged"
        )
    lost = builder.lost
    rows, nodes, buffers = builder.finish()
    parts = record_batch_parts(rows, nodes, buffers, compress)
    _send(channel, BulkBatch(next=follows, rows=rows, lost=lost), parts)


def _send(channel: Channel, method: BulkBatch, parts: list[bytes]) -> None:
    """Send a batch; a large one is framed when it is written, and not copied before."""
    connection, number = channel.connection, channel.number
    payload = connection.spec.encode(method)
    size = sum(map(len, parts))
    if size < LONG_BODY_BYTES:
        content = Message("", "", _NO_PROPERTIES, b"".join(parts))
        connection.out.content(number, payload, content, connection.frame_max, CLASS)
    else:
        connection.out.frame(METHOD, number, payload)
        connection.out.frame(HEADER, number, _HEADER.pack(CLASS, 0, size, 0))
        limit = connection.frame_max - FRAME_OVERHEAD_BYTES
        connection.out.postpone(ScatteredFrames(number, parts, limit))
    connection.touch()


def _append_to(channel: Channel, queue: Queue, method: BulkRead, into: BatchBuilder) -> int:
    """Read the requested range, or the messages of a claim, into a batch builder.

    Raises:
        Refusal: the claim is not open, or not in that epoch.
    """
    if not method.group:
        return queue.append_to(method.first, method.end, into)
    leases = channel.connection.broker.leases
    group = leases.current(channel.vhost, queue, method.group, method.epoch)
    claim = leases.opened(group, method.claim)
    # No end means all of the claim: its client may not know the positions yet.
    end = method.end or group.bounds(claim)[1]
    return group.queue.claims().append_to(claim.runs, method.first, end, into, claim.seen)


def _check_generation(queue: Queue, generation: str) -> None:
    if generation and generation != queue.identity:
        resource = rendered("queue", queue.name, queue.vhost)
        raise Refusal(
            ErrorKind.GENERATION_CHANGED,
            f"{resource} was deleted and declared again: its log is {queue.identity} now, and "
            f"{generation} was asked for",
        )


@lru_cache(maxsize=64)
def _selection(columns: bytes) -> ArrowSelection:
    """Parse a list of column names; cached, because readers repeat the same list."""
    try:
        text = columns.decode()
    except UnicodeDecodeError as error:
        raise ValueError("the names of the columns are no UTF-8") from error
    return selection(text)


def _basic(message: Message) -> Message:
    return converted(message, FAMILY_09)


def _filter(builder: BatchBuilder, filters: dict[str, Any]) -> None:
    """Set the filter of a batch builder.

    Raises:
        Refusal: a filter is unknown or has a wrong value.
        FilterError: the condition is invalid.
    """
    for name, value in filters.items():
        # An unknown filter that was ignored would give rows that the client does not expect.
        if name not in _FILTERS:
            known = ", ".join(_FILTERS)
            raise precondition(f"there is no filter '{name}'; there are {known}")
        if name in (_SINCE, _UNTIL):
            takes = "milliseconds since 1970"
            fits = type(value) is int and 0 <= value < _LAST
        else:
            takes, fits = "text", type(value) is str
        if not fits:
            raise precondition(f"the filter '{name}' takes {takes}, not {value!r}")
    if _KEY in filters and _PREFIX in filters:
        raise precondition(f"the filters '{_KEY}' and '{_PREFIX}' exclude each other")
    key = filters.get(_KEY, filters.get(_PREFIX))
    builder.filter(
        None if key is None else key.encode(errors="surrogateescape"),
        _PREFIX in filters,
        filters.get(_SINCE, 0),
        filters.get(_UNTIL, 0),
    )
    if _WHERE in filters:
        builder.where(MessageTest(repeatable_filter(filters[_WHERE]), builder))


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    BulkSpan: span,
    BulkRead: read,
}
