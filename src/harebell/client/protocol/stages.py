"""The verbs of staged publishing and of publishers whose repeats are dropped.

They are Harebell's own (docs/protocols/extensions.md); against a broker that lacks them
every one raises `ExtensionMissing`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harebell.client.protocol.call import Call
from harebell.client.protocol.verbs import Verbs
from harebell.wire.v09 import publisher as publisher_wire
from harebell.wire.v09 import stage as wire
from harebell.wire.v09.stage import StagePart as Part


@dataclass(frozen=True)
class Committed:
    """What a commit did.

    Args:
        rows: how many were published just now.
        unroutable: how many of them reached no queue by the exchange that they were for.
        repeated: whether the batch had been committed before, so that nothing was done.
    """

    rows: int
    unroutable: int
    repeated: bool


def stage_open(channel: Verbs, publisher: str, run: str) -> Call[int]:
    """Speak for a publisher from now on; every other run that was known is fenced.

    Args:
        channel: any channel.
        publisher: the name of the publisher, which belongs to the user.
        run: the name of this run, which no other run ever has, for example a UUID. Several
            processes may open the same run.

    Returns:
        The number of the first batch that is not committed; 0 at first.

    Raises:
        Fenced: another run has taken its place already.
        ExtensionMissing: the broker has no staged publishing.
    """
    channel.need(wire.NAME)
    return channel.call(wire.StageOpen(publisher, run), (wire.StageOpenOk,), _next)


def stage_append(
    channel: Verbs,
    publisher: str,
    run: str,
    *,
    batch: int,
    part: int,
    attempt: int,
    number: int,
    columns: str,
    data: bytes,
) -> Call[int]:
    """Stage a piece of a part of a batch. Several may be on their way at once.

    Args:
        channel: any channel.
        publisher: the name of the publisher.
        run: the run.
        batch: the number of the batch.
        part: the number of the part within it; each is written by one task.
        attempt: which attempt to write the part, for example Spark's task attempt id.
        number: of the piece within the attempt, from 0.
        columns: their names, in their order: "value,routing_key,properties.type".
        data: one record batch as an encapsulated message of Arrow's IPC format, uncompressed.

    Returns:
        How many rows of the attempt are staged.

    Raises:
        Fenced: another run has taken its place.
        NotFound: the run was not opened.
        PreconditionFailed: the columns are wrong, a piece is missing, or there is no room.
    """
    channel.need(wire.NAME)
    method = wire.StageAppend(publisher, run, batch, part, attempt, number, columns.encode())
    call = channel.call(method, (wire.StageAppendOk,), _rows)
    channel.content(wire.CLASS_ID, data)
    return call


def stage_commit(
    channel: Verbs,
    publisher: str,
    run: str,
    *,
    batch: int,
    parts: Iterable[Part | tuple[int, int, int]],
    exchange: str = "",
    routing_key: str = "",
    delivery_mode: int = 2,
    mandatory: bool = False,
    dead_letter: str = "",
) -> Call[Committed]:
    """Publish the parts of a batch, all or nothing; a batch that is committed stays so.

    Args:
        channel: any channel.
        publisher: the name of the publisher.
        run: the run.
        batch: the number of the batch.
        parts: part, attempt and number of rows of each that counts.
        exchange: of rows without one.
        routing_key: of rows without one.
        delivery_mode: of rows without one: 2 is persistent, 1 is not, 0 leaves it out.
        mandatory: publish nothing when a row reaches no queue.
        dead_letter: the exchange for rows that reach no queue; "" for none.

    Raises:
        Fenced: another run has taken its place.
        ChannelClosed: with 312, rows reach no queue and it was mandatory.
        PreconditionFailed: a part is not staged as it is wanted, a row cannot be a message, or a
            queue has no room.
        AccessRefused: an exchange that the user may not publish to.
    """
    channel.need(wire.NAME)
    method = wire.StageCommit(
        publisher=publisher,
        run=run,
        batch=batch,
        exchange=exchange,
        routing_key=routing_key,
        delivery_mode=delivery_mode,
        mandatory=mandatory,
        dead_letter=dead_letter,
        parts=wire.encode_parts(Part(*part) for part in parts),
    )
    return channel.call(method, (wire.StageCommitOk,), _committed)


def stage_abort(channel: Verbs, publisher: str, run: str, *, batch: int) -> Call[int]:
    """Forget what is staged of a batch; returns how many rows that were.

    Raises:
        Fenced: another run has taken its place.
    """
    channel.need(wire.NAME)
    return channel.call(wire.StageAbort(publisher, run, batch), (wire.StageAbortOk,), _rows)


def stage_discard(
    channel: Verbs, publisher: str, run: str, *, batch: int, part: int, attempt: int
) -> Call[int]:
    """Forget what one attempt has staged of a part; returns how many rows that were.

    Raises:
        Fenced: another run has taken its place.
    """
    channel.need(wire.NAME)
    method = wire.StageDiscard(publisher, run, batch, part, attempt)
    return channel.call(method, (wire.StageDiscardOk,), _rows)


def publisher_declare(channel: Verbs, publisher: str) -> Call[int]:
    """Publish on this channel for a publisher, whose repeats are dropped.

    Every message on the channel then needs a header `x-publishing-id`, an integer that grows. A
    channel of a recovered connection has to be declared again.

    Args:
        channel: the channel.
        publisher: the name of the publisher, which belongs to the user.

    Returns:
        The smallest number that was not taken yet; 0 at first.

    Raises:
        ExtensionMissing: the broker has no such publishers.
        PreconditionFailed: the channel has transactions.
    """
    channel.need(publisher_wire.NAME)
    method = publisher_wire.PublisherDeclare(publisher)
    return channel.call(method, (publisher_wire.PublisherDeclareOk,), _next)


def publisher_forget(channel: Verbs, publisher: str) -> Call[None]:
    """Forget what a publisher has published and staged: the name will not be used again.

    Raises:
        ResourceLocked: a channel publishes for it.
    """
    channel.need(publisher_wire.NAME)
    method = publisher_wire.PublisherForget(publisher)
    return channel.call(method, (publisher_wire.PublisherForgetOk,), _nothing)


def _nothing(reply: publisher_wire.PublisherForgetOk) -> None:
    """There is nothing to tell."""


def _next(reply: wire.StageOpenOk | publisher_wire.PublisherDeclareOk) -> int:
    return reply.next


def _rows(reply: wire.StageAppendOk | wire.StageAbortOk | wire.StageDiscardOk) -> int:
    return reply.rows


def _committed(reply: wire.StageCommitOk) -> Committed:
    return Committed(reply.rows, reply.unroutable, reply.repeated)
