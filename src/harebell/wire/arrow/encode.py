"""Encode messages of Arrow's IPC format: a schema, or a record batch.

    | FF FF FF FF | size of the metadata | metadata (a flatbuffer) | buffers, each padded |
      4             4, little-endian       a multiple of eight       to eight octets

The metadata describes the buffers: a node per array (rows, nulls) and the position of every buffer,
children after their parents. A validity buffer without nulls is empty. A compressed buffer begins
with its uncompressed size, eight bytes. Buffers with equal bytes can have the same position: all
columns without values do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from struct import Struct

from harebell.wire.arrow.flat import FlatNode, FlatTable, Scalar, Structs, Vector, flatbuffer
from harebell.wire.arrow.types import ArrowColumn, field_table

_VERSION_5 = 4
_SCHEMA = 1
_RECORD_BATCH = 3
_LZ4_FRAME = 0
_PAIR = Struct("<qq")
_HEAD = Struct("<II")
_SIZE = Struct("<q")
_CONTINUATION = 0xFFFF_FFFF
_ALIGN = 8

Buffers = Sequence[bytes | None]
Nodes = Sequence[tuple[int, int]]
Compress = Callable[[bytes], bytes]

NONE = ""
LZ4 = "lz4"

END_OF_STREAM = _HEAD.pack(_CONTINUATION, 0)
"""The end of a stream."""


def _message(kind: int, header: FlatTable, body: int) -> bytes:
    # Fields of the table Message in Arrow's Message.fbs: version, header type, header, body length.
    fields: dict[int, Scalar | FlatNode] = {
        0: Scalar("h", _VERSION_5),
        1: Scalar("B", kind),
        2: header,
        3: Scalar("q", body),
    }
    metadata = flatbuffer(FlatTable(fields))
    return _HEAD.pack(_CONTINUATION, len(metadata)) + metadata


def schema_message(columns: Iterable[ArrowColumn]) -> bytes:
    """Return the first message of a stream with these columns."""
    header = FlatTable({1: Vector([field_table(column) for column in columns])})
    return _message(_SCHEMA, header, 0)


def record_batch(rows: int, nodes: Nodes, buffers: Buffers, compress: Compress | None) -> bytes:
    """Return the message of a record batch; see `record_batch_parts`."""
    return b"".join(record_batch_parts(rows, nodes, buffers, compress))


def record_batch_parts(
    rows: int, nodes: Nodes, buffers: Buffers, compress: Compress | None
) -> list[bytes]:
    """Return the message of a record batch in parts, in which the buffers are not copied.

    Args:
        rows: number of rows.
        nodes: (length, nulls) of every array, children after their parents.
        buffers: of the arrays in the same order; None for a validity without nulls.
        compress: returns a frame of LZ4; None for no compression.
    """
    spans = bytearray()
    body: list[bytes] = []
    offset = 0
    # The last buffer of each size, and its span: columns without values have equal ones.
    written: dict[int, tuple[bytes, bytes]] = {}
    for buffer in buffers:
        data = buffer or b""
        before = written.get(len(data))
        if before is not None and before[0] == data:
            spans += before[1]
            continue
        size = len(data)
        # An empty buffer stays empty: a size in front would make it a buffer of eight bytes.
        if compress is not None and data:
            data = _SIZE.pack(size) + compress(data)
        # The size without the padding, which only aligns the next buffer.
        span = _PAIR.pack(offset, len(data))
        spans += span
        if buffer:
            written[size] = (buffer, span)
        padding = -len(data) % _ALIGN
        if data:
            body.append(data)
        if padding:
            body.append(bytes(padding))
        offset += len(data) + padding
    # Fields of the table RecordBatch: length, nodes, buffers, compression.
    fields: dict[int, Scalar | FlatNode] = {
        0: Scalar("q", rows),
        1: Structs(b"".join([_PAIR.pack(*node) for node in nodes]), len(nodes)),
        2: Structs(bytes(spans), len(buffers)),
    }
    if compress is not None:
        fields[3] = FlatTable({0: Scalar("b", _LZ4_FRAME), 1: Scalar("b", 0)})
    return [_message(_RECORD_BATCH, FlatTable(fields), offset), *body]


def compressor(name: str) -> Compress | None:
    """Return the function that compresses buffers; None for no compression.

    Raises:
        ValueError: the compression is unknown or not installed; the text says what to do.
    """
    if name == NONE:
        return None
    if name != LZ4:
        raise ValueError(f"there is no compression '{name}': ask for lz4, or for none")
    try:
        from lz4.frame import compress  # an optional library
    except ImportError as error:
        raise ValueError(
            "compression 'lz4' needs the library lz4 where the broker runs: pip install lz4"
        ) from error
    # A variable of its own, because the library has no types.
    typed_compress: Compress = compress
    return typed_compress
