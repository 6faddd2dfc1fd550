"""Decode record batches of a peer: locate the buffers, for the kernel that reads the rows.

The input is one encapsulated message of Arrow's IPC format (`encode.py` documents it), without the
schema, because both sides know the columns. Nothing is copied here, and rows are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from harebell.base.errors import BatchError
from harebell.wire.arrow.flat_reading import ReadTable, malformed, root

_HEAD = Struct("<II")
_PAIR = Struct("<qq")
_I64 = Struct("<q")
_I16 = Struct("<h")
_U8 = Struct("<B")
_CONTINUATION = 0xFFFF_FFFF
_RECORD_BATCH = 3
_VERSIONS = (3, 4)
"""Metadata versions V4 and V5, by their numbers; they do not differ in what is used here."""

_TEXT_BUFFERS = 3
_NUMBERS = ("delivery_mode", "priority", "timestamp")


class DecodedBatch(NamedTuple):
    """The location of the buffers in a record batch.

    Args:
        rows: number of rows.
        entries: number of entries in all maps of its column `headers`.
        spans: start and size of every buffer, from the first byte of the message.
    """

    rows: int
    entries: int
    spans: tuple[int, ...]


def decode_batch(message: bytes, columns: Sequence[str], fields: Sequence[str]) -> DecodedBatch:
    """Decode the metadata of a record batch.

    Args:
        message: the whole encapsulated message.
        columns: names of the columns, in their order.
        fields: names of the fields of its column `properties`, in their order.

    Raises:
        BatchError: it is not a record batch, has other columns, or is truncated.
    """
    if len(message) < _HEAD.size:
        raise BatchError(f"a record batch has more than {len(message)} octets")
    mark, size = _HEAD.unpack_from(message)
    # Writers before Arrow 0.15 had no such mark: the size came first.
    if mark != _CONTINUATION:
        raise BatchError("the octets do not begin like a message of Arrow's IPC format")
    start = _HEAD.size + size
    if start > len(message):
        raise BatchError(f"the metadata have {size} octets, and the message ends before")
    head = root(message[_HEAD.size : start])
    table = _record_batch(head)
    body = head.number(3, _I64)
    # Bytes behind the body are ignored, as a writer may pad the message.
    if not 0 <= body <= len(message) - start:
        raise BatchError(f"the buffers have {body} octets, and {len(message) - start} came")
    rows = table.number(0, _I64)
    if rows < 0:
        raise malformed(f"the batch has {rows} rows")
    entries, count = _entries(_nodes(table), rows, columns, fields)
    return DecodedBatch(rows, entries, _spans(table, count, start, body))


def _record_batch(head: ReadTable) -> ReadTable:
    kind = head.number(1, _U8)
    if kind != _RECORD_BATCH:
        raise BatchError(f"the message is of Arrow's kind {kind}, not a record batch")
    version = head.number(0, _I16)
    if version not in _VERSIONS:
        raise BatchError(f"the metadata are of version {version + 1}, and 4 and 5 can be read")
    table = head.table(2)
    if table is None:
        raise malformed("there is no record batch in it")
    if table.table(3) is not None:
        # A few octets could become gigabytes, and the kernel reads the buffers where they are.
        raise BatchError("the record batch is compressed: send it without compression")
    return table


def _nodes(table: ReadTable) -> list[tuple[int, int]]:
    return list(_PAIR.iter_unpack(table.structs(1, _PAIR.size)))


def _entries(
    nodes: list[tuple[int, int]], rows: int, columns: Sequence[str], fields: Sequence[str]
) -> tuple[int, int]:
    """Check the lengths of all arrays; return the entries of all maps and the count of buffers."""
    lengths: list[tuple[str, bool]] = []
    count = 0
    for name in columns:
        lengths.append((name, True))
        if name == "properties":
            # A struct has a validity buffer; a number validity and values; a text offsets too.
            count += 1
            lengths += [(f"{name}.{field}", True) for field in fields]
            count += sum(2 if field in _NUMBERS else _TEXT_BUFFERS for field in fields)
        elif name == "headers":
            # A map: validity and offsets, then the validity of its entries, keys and values.
            lengths += [(name, False)] * 3
            count += 3 + 2 * _TEXT_BUFFERS
        else:
            count += _TEXT_BUFFERS
    if len(nodes) != len(lengths):
        raise BatchError(
            f"the batch has {len(nodes)} arrays, and {len(lengths)} belong to the columns "
            f"{', '.join(columns)}"
        )
    entries = -1
    for (name, by_row), (length, _) in zip(lengths, nodes, strict=True):
        # The first array of the entries says how many there are; keys and values have as many.
        if not by_row and entries < 0:
            entries = length
        if length != (rows if by_row else entries) or length < 0:
            raise BatchError(f"an array of {name} has {length} rows, and the batch has {rows}")
    return max(entries, 0), count


def _spans(table: ReadTable, count: int, start: int, body: int) -> tuple[int, ...]:
    buffers = list(_PAIR.iter_unpack(table.structs(2, _PAIR.size)))
    if len(buffers) != count:
        raise BatchError(f"the batch has {len(buffers)} buffers, and {count} belong to its columns")
    spans: list[int] = []
    for offset, size in buffers:
        if offset < 0 or size < 0 or offset > body or size > body - offset:
            raise BatchError(
                f"a buffer of {size} octets at {offset} is outside of the {body} that came"
            )
        spans += (start + offset, size)
    return tuple(spans)
