"""The class stage: batches that are published together, once.

docs/protocols/extensions-publishing.md explains it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import WRITE
from harebell.base.errors import BatchError
from harebell.base.limits import STAGE_PIECE_BYTES
from harebell.base.row_columns import columns_of
from harebell.front.amqp_0_9_1.content import Content
from harebell.front.amqp_0_9_1.staged import StagedCommit
from harebell.front.common.errors import soft
from harebell.front.common.permission import check_some
from harebell.kernels.records import crc32c
from harebell.model.publishing.publishers import STAGED, Key
from harebell.model.publishing.stage_files import Piece
from harebell.wire.arrow.decode import decode_batch
from harebell.wire.v09 import methods
from harebell.wire.v09.stage import CLASS_ID, COMMIT_ID, decode_parts

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel

_OPEN = (CLASS_ID, 10)
_APPEND = (CLASS_ID, 20)
_COMMIT = (CLASS_ID, COMMIT_ID)
_LAST_BATCH = 2**63 - 1


def _key(channel: Channel, publisher: str) -> Key:
    return Key(STAGED, channel.vhost.name, channel.connection.user.name, publisher)


def stage_open(channel: Channel, method: methods.StageOpen) -> None:
    """stage.open: make this run the publisher's current one, which fences others."""
    for name, value in (("publisher", method.publisher), ("run", method.run)):
        if not value:
            raise soft(406, f"stage.open: the {name} has no name", *_OPEN)
    check_some(channel, "a publisher that stages batches", WRITE)
    broker, key = channel.connection.broker, _key(channel, method.publisher)
    entry = broker.publishers.entry(key)
    before = entry.runs[-1:]
    broker.publishers.enter(entry, method.run)
    if entry.runs[-1:] != before:
        # Another run stages its own rows; those of the fenced one could never be committed.
        broker.stages.drop_all(key)
    broker.stages.came(key, channel.connection)
    # The reply waits for the disk, so that others stay fenced after a crash.
    channel.connection.hold_until(channel.connection.commit.ticket)
    channel.connection.send(channel.number, methods.StageOpenOk(next=entry.next))


def append(channel: Channel, method: methods.StageAppend) -> None:
    """stage.append: its content follows."""
    gauge = channel.connection.registry.gauge
    channel.content = Content(method, gauge, _APPEND, done=_appended)
    channel.connection.scanner.pending += 1


def _appended(channel: Channel, content: Content) -> None:
    """Stage a complete piece."""
    method: methods.StageAppend = content.method
    broker, key = channel.connection.broker, _key(channel, method.publisher)
    entry = broker.publishers.check(broker.publishers.find(key), method.publisher, method.run)
    broker.stages.came(key, channel.connection)
    data = content.body()
    columns = method.columns.decode(errors="replace")
    # Now and not at the commit: the client still knows which task has sent a bad piece.
    rows = _rows_of(method, columns, data)
    reply = methods.StageAppendOk(rows=rows, octets=len(data))
    # Rows of a committed batch are not stored; its commit reports that it is repeated.
    if method.batch >= entry.next:
        attempt = (method.part, method.attempt)
        piece = Piece(columns, 0, 0, len(data), rows, crc32c(data))
        reply.rows, reply.octets = broker.stages.append(
            key, method.batch, attempt, method.number, piece, data
        )
    channel.connection.send(channel.number, reply)


def _rows_of(method: methods.StageAppend, columns: str, data: bytes) -> int:
    """Return the number of rows of a piece.

    Raises:
        ProtocolError: 406, its rows are not valid messages.
    """
    where = f"part {method.part} of batch {method.batch}"
    if len(data) > STAGE_PIECE_BYTES:
        text = f"{where}: a piece has {len(data)} octets, and the most is {STAGE_PIECE_BYTES}"
        raise soft(406, text, *_APPEND)
    if method.batch > _LAST_BATCH:
        raise soft(406, f"{where}: the most is batch {_LAST_BATCH}", *_APPEND)
    try:
        return decode_batch(data, *columns_of(columns)).rows
    except BatchError as error:
        raise soft(406, f"{where}: {error}", *_APPEND) from None


def commit(channel: Channel, method: methods.StageCommit) -> None:
    """stage.commit: publish a batch, unless it is published already."""
    connection = channel.connection
    broker, key = connection.broker, _key(channel, method.publisher)
    broker.publishers.check(broker.publishers.find(key), method.publisher, method.run)
    # The result is not used: malformed parts are refused before the commit waits for others.
    decode_parts(method.parts)
    if channel.transaction is not None:
        raise soft(406, "a staged batch cannot be part of a transaction", *_COMMIT)
    broker.stages.came(key, connection)
    connection.perform(StagedCommit(channel, method, key, _answer).step)


def _answer(channel: Channel, work: StagedCommit) -> None:
    """Reply when the batch is on disk."""
    connection = channel.connection
    if connection.channels.get(channel.number) is not channel:
        # The channel is closed. The batch is committed nevertheless.
        return
    connection.published = True
    connection.hold_until(connection.commit.ticket)
    reply = methods.StageCommitOk(
        rows=work.rows, unroutable=work.unroutable, repeated=work.repeated
    )
    connection.send(channel.number, reply)


def abort(channel: Channel, method: methods.StageAbort) -> None:
    """stage.abort: drop the staged rows of a batch."""
    broker, key = channel.connection.broker, _key(channel, method.publisher)
    broker.publishers.check(broker.publishers.find(key), method.publisher, method.run)
    rows = broker.stages.drop(key, method.batch)
    channel.connection.send(channel.number, methods.StageAbortOk(rows=rows))


def discard(channel: Channel, method: methods.StageDiscard) -> None:
    """stage.discard: drop the staged rows of a failed attempt."""
    broker, key = channel.connection.broker, _key(channel, method.publisher)
    broker.publishers.check(broker.publishers.find(key), method.publisher, method.run)
    rows = broker.stages.discard(key, method.batch, (method.part, method.attempt))
    channel.connection.send(channel.number, methods.StageDiscardOk(rows=rows))


HANDLERS: dict[type, Callable[[Any, Any], None]] = {
    methods.StageOpen: stage_open,
    methods.StageAppend: append,
    methods.StageCommit: commit,
    methods.StageAbort: abort,
    methods.StageDiscard: discard,
}
