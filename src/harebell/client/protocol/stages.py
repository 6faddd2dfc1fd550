"""The verbs of staged publishing and of publisher deduplication.

They are Harebell's own (docs/protocols/extensions-publishing.md); with a broker that lacks them
every one raises `ExtensionMissing`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from harebell.client.protocol.call import Call
from harebell.client.protocol.verbs import Verbs
from harebell.wire.v09 import methods
from harebell.wire.v09 import publisher as publisher_wire
from harebell.wire.v09 import stage as wire
from harebell.wire.v09.stage import StagePart as Part


@dataclass(frozen=True)
class Committed:
    """The result of a commit.

    Args:
        rows: number of rows published by this commit.
        unroutable: number of rows that were unroutable on their exchange.
        repeated: whether the batch was committed before, so that nothing was done.
    """

    rows: int
    unroutable: int
    repeated: bool


def stage_open(channel: Verbs, publisher: str, run: str) -> Call[int]:
    """Open a publisher; all other known runs of it are fenced.

    Args:
        channel: any channel.
        publisher: the name of the publisher, which belongs to the user.
        run: unique name of this run, for example a UUID. Several
            processes may open the same run.

    Returns:
        The number of the first uncommitted batch; 0 at first.

    Raises:
        Fenced: another run has opened the publisher already.
        ExtensionMissing: the broker has no staged publishing.
    """
    channel.need(wire.NAME)
    return channel.call(methods.StageOpen(publisher, run), (methods.StageOpenOk,), _next)


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
    data: bytes | memoryview,
) -> Call[int]:
    """Stage a piece of a part of a batch. Several may be in flight at once.

    Args:
        channel: any channel.
        publisher: the name of the publisher.
        run: the name of the run that has opened the publisher.
        batch: the number of the batch.
        part: the number of the part within it; each is written by one task.
        attempt: which attempt to write the part, for example Spark's task attempt id.
        number: number of the piece within the attempt, from 0.
        columns: names of the columns, in their order: "value,routing_key,properties.type".
        data: one record batch as an encapsulated message of Arrow's IPC format, uncompressed.

    Returns:
        The number of staged rows of the attempt.

    Raises:
        Fenced: another run has opened the publisher.
        NotFound: the run is not open.
        PreconditionFailed: the columns are wrong, a piece is missing, or there is no room.
    """
    channel.need(wire.NAME)
    method = methods.StageAppend(publisher, run, batch, part, attempt, number, columns.encode())
    call = channel.call(method, (methods.StageAppendOk,), _rows)
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
    """Publish the parts of a batch, all or nothing; a committed batch stays committed.

    Args:
        channel: any channel.
        publisher: the name of the publisher.
        run: the name of the run that has opened the publisher.
        batch: the number of the batch.
        parts: part, attempt and number of rows of each part to publish.
        exchange: default exchange.
        routing_key: default routing key.
        delivery_mode: default delivery mode: 2 is persistent, 1 is not, 0 omits it.
        mandatory: publish nothing if a row is unroutable.
        dead_letter: the exchange for unroutable rows; "" for none.

    Raises:
        Fenced: another run has opened the publisher.
        ChannelClosed: with 312, a row is unroutable and it was mandatory.
        PreconditionFailed: a part is not staged as specified, a row cannot be a message, or a
            queue has no room.
        AccessRefused: an exchange that the user may not publish to.
    """
    channel.need(wire.NAME)
    method = methods.StageCommit(
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
    return channel.call(method, (methods.StageCommitOk,), _committed)


def stage_abort(channel: Verbs, publisher: str, run: str, *, batch: int) -> Call[int]:
    """Delete what is staged of a batch; return the number of rows.

    Raises:
        Fenced: another run has opened the publisher.
    """
    channel.need(wire.NAME)
    return channel.call(methods.StageAbort(publisher, run, batch), (methods.StageAbortOk,), _rows)


def stage_discard(
    channel: Verbs, publisher: str, run: str, *, batch: int, part: int, attempt: int
) -> Call[int]:
    """Delete what one attempt has staged of a part; return the number of rows.

    Raises:
        Fenced: another run has opened the publisher.
    """
    channel.need(wire.NAME)
    method = methods.StageDiscard(publisher, run, batch, part, attempt)
    return channel.call(method, (methods.StageDiscardOk,), _rows)


class Numbers(NamedTuple):
    """The numbers of a publisher (`publisher_declare`).

    Args:
        next: the smallest number that was not accepted yet; 0 at first.
        eras: of the numbers before it, and of those from it on while the broker runs.
    """

    next: int
    eras: str


def publisher_declare(
    channel: Verbs, publisher: str, *, next_number: int = 0, eras: str = ""
) -> Call[Numbers]:
    """Publish on this channel with deduplication: the broker drops numbers that were used.

    Every message on the channel then needs a header `x-publishing-id`, an increasing integer. A
    channel of a recovered connection must be declared again.

    Args:
        channel: a channel that publishes nothing under another name.
        publisher: the name of the publisher, which belongs to the user.
        next_number: the number after the last one that was confirmed.
        eras: what the declaration before that confirm has returned; without it the broker cannot
            tell that it has lost some of the numbers.

    Raises:
        ExtensionMissing: the broker has no publisher deduplication.
        PreconditionFailed: the channel is transactional, or the broker has lost numbers before
            `next_number`; the text says which.
    """
    channel.need(publisher_wire.NAME)
    method = methods.PublisherDeclare(publisher, next_number, eras.encode())
    return channel.call(method, (methods.PublisherDeclareOk,), _numbers)


def publisher_forget(channel: Verbs, publisher: str) -> Call[None]:
    """Delete what a publisher has published and staged: the name will not be used again.

    Raises:
        ResourceLocked: a channel publishes for it.
    """
    channel.need(publisher_wire.NAME)
    method = methods.PublisherForget(publisher)
    return channel.call(method, (methods.PublisherForgetOk,), _nothing)


def _nothing(reply: methods.PublisherForgetOk) -> None:
    """Return None: the verb has no result."""


def _next(reply: methods.StageOpenOk) -> int:
    return reply.next


def _numbers(reply: methods.PublisherDeclareOk) -> Numbers:
    return Numbers(reply.next, reply.eras.decode("ascii", "replace"))


def _rows(reply: methods.StageAppendOk | methods.StageAbortOk | methods.StageDiscardOk) -> int:
    return reply.rows


def _committed(reply: methods.StageCommitOk) -> Committed:
    return Committed(reply.rows, reply.unroutable, reply.repeated)
