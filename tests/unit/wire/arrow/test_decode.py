"""Record batches as pyarrow writes them are found, and nothing else is taken for one."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from harebell.base.errors import BatchError
from harebell.wire.arrow.decode import decode_batch

SCHEMA = pa.schema(
    [
        ("value", pa.binary()),
        ("properties", pa.struct([("message_id", pa.string()), ("priority", pa.int32())])),
        ("headers", pa.map_(pa.string(), pa.string())),
    ]
)
COLUMNS = tuple(SCHEMA.names)
FIELDS = ("message_id", "priority")
ROWS = [
    {"value": b"one", "properties": {"message_id": "m"}, "headers": [("a", "b"), ("c", None)]},
    {"value": b"three", "properties": None, "headers": None},
]
BATCH = pa.RecordBatch.from_pylist(ROWS, schema=SCHEMA)
MESSAGE = BATCH.serialize().to_pybytes()


def test_the_buffers_are_where_pyarrow_put_them() -> None:
    found = decode_batch(MESSAGE, COLUMNS, FIELDS)
    assert (found.rows, found.entries, len(found.spans)) == (2, 2, 2 * (3 + 1 + 3 + 2 + 3 + 6))
    start, size = found.spans[4:6]
    assert MESSAGE[start : start + size] == b"onethree"


def test_a_slice_is_sent_without_the_rows_around_it() -> None:
    message = BATCH.slice(1, 1).serialize().to_pybytes()
    found = decode_batch(message, COLUMNS, FIELDS)
    start, size = found.spans[4:6]
    assert (found.rows, message[start : start + size]) == (1, b"three")


def test_no_rows_are_a_batch_too() -> None:
    message = BATCH.slice(0, 0).serialize().to_pybytes()
    assert decode_batch(message, COLUMNS, FIELDS)[:2] == (0, 0)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (b"", "a record batch has more than 0 octets"),
        (b"ARROW1\0\0", "do not begin like a message of Arrow's IPC format"),
        (b"\xff\xff\xff\xff\xff\0\0\0", "the metadata have 255 octets, and the message ends"),
        (SCHEMA.serialize().to_pybytes(), "the message is of Arrow's kind 1, not a record batch"),
        (MESSAGE[:-8], "the buffers have .* octets, and .* came"),
    ],
)
def test_octets_that_are_no_record_batch_are_refused(message: bytes, error: str) -> None:
    with pytest.raises(BatchError, match=error):
        decode_batch(message, COLUMNS, FIELDS)


def test_a_compressed_batch_is_refused_with_the_remedy() -> None:
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, SCHEMA, options=options) as writer:
        writer.write_batch(BATCH)
    stream = sink.getvalue().to_pybytes()
    message = stream[len(SCHEMA.serialize().to_pybytes()) :]
    with pytest.raises(BatchError, match="compressed: send it without compression"):
        decode_batch(message, COLUMNS, FIELDS)


def test_other_columns_than_those_that_were_named_are_refused() -> None:
    with pytest.raises(BatchError, match="has 8 arrays, and 1 belong to the columns value"):
        decode_batch(MESSAGE, ("value",), ())
    one = BATCH.slice(0, 1).serialize().to_pybytes()
    with pytest.raises(BatchError, match=r"an array of properties.message_id has 2 rows"):
        decode_batch(one, ("headers", "properties", "value"), FIELDS)


def test_octets_that_were_changed_at_random_are_read_within_their_bounds() -> None:
    rng = random.Random(11)
    refused = 0
    for _ in range(500):
        data = bytearray(MESSAGE)
        data[rng.randrange(len(data))] = rng.choice((0, 1, 0x7F, 0x80, 0xFF))
        try:
            found = decode_batch(bytes(data), COLUMNS, FIELDS)
        except BatchError:
            refused += 1
            continue
        for start, size in zip(found.spans[::2], found.spans[1::2], strict=True):
            assert 0 <= start <= start + size <= len(data)
    assert refused
