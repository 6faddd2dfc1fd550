"""Messages of Arrow's IPC format, as pyarrow reads them."""

from __future__ import annotations

import io
import struct

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.wire.arrow.columns import COLUMNS, selection
from harebell.wire.arrow.encode import END_OF_STREAM, LZ4, compressor, record_batch, schema_message
from harebell.wire.arrow.types import INT64, UTF8, ArrowColumn

NUMBER = ArrowColumn("number", INT64)
TEXT = ArrowColumn("text", UTF8)


def schema(*columns: ArrowColumn) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(schema_message(columns)))


def texts(values: list[str | None]) -> tuple[tuple[int, int], list[bytes | None]]:
    """The node and the buffers of a column of texts."""
    array = pa.array(values, pa.string())
    offsets = [0]
    for value in values:
        offsets.append(offsets[-1] + len((value or "").encode()))
    bits = array.buffers()[0]
    data = "".join(value or "" for value in values).encode()
    return (len(values), array.null_count), [
        None if bits is None else bits.to_pybytes(),
        struct.pack(f"<{len(offsets)}i", *offsets),
        data,
    ]


@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.none() | st.text(max_size=9))))
@pytest.mark.parametrize("compression", ["", LZ4])
def test_a_batch_is_what_pyarrow_reads(
    compression: str, rows: list[tuple[int, str | None]]
) -> None:
    numbers = struct.pack(f"<{len(rows)}q", *(number for number, _ in rows))
    node, buffers = texts([text for _, text in rows])
    data = record_batch(
        len(rows),
        [(len(rows), 0), node],
        [None, numbers, *buffers],
        compressor(compression),
    )
    assert len(data) % 8 == 0
    batch = pa.ipc.read_record_batch(pa.py_buffer(data), schema(NUMBER, TEXT))
    batch.validate(full=True)
    assert batch.to_pylist() == [{"number": number, "text": text} for number, text in rows]


def test_schema_batches_and_end_are_a_stream_that_arrow_reads() -> None:
    batch = record_batch(2, [(2, 0)], [None, struct.pack("<qq", 1, 2)], None)
    stream = schema_message([NUMBER]) + batch + batch + END_OF_STREAM
    table = pa.ipc.open_stream(io.BytesIO(stream)).read_all()
    assert table.to_pydict() == {"number": [1, 2, 1, 2]}


def test_a_batch_is_read_without_copying() -> None:
    data = pa.py_buffer(record_batch(1, [(1, 0)], [None, struct.pack("<q", 5)], None))
    batch = pa.ipc.read_record_batch(data, schema(NUMBER))
    values = batch.column(0).buffers()[1]
    assert data.address <= values.address < data.address + data.size


def test_buffers_with_equal_bytes_are_sent_once() -> None:
    rows = 1000
    zeros, bits = bytes(4 * (rows + 1)), bytes(rows // 8)
    alike = [buffer for _ in range(5) for buffer in (bits, bytes(len(zeros)), b"")]
    values = b"".join(number.to_bytes(8, "little") for number in range(rows))
    nodes = [(rows, rows)] * 5 + [(rows, 0)] * 2
    data = record_batch(rows, nodes, [*alike, None, values, None, bytes(len(values))], None)
    assert len(data) < len(zeros) + len(bits) + 2 * len(values) + 1000
    names = [(f"text{number}", pa.string()) for number in range(5)]
    schema = pa.schema([*names, ("n", pa.int64()), ("zero", pa.int64())])
    found = pa.ipc.read_record_batch(pa.py_buffer(data), schema)
    found.validate(full=True)
    assert found.to_pydict() == {f"text{number}": [None] * rows for number in range(5)} | {
        "n": list(range(rows)),
        "zero": [0] * rows,
    }


def test_every_column_of_a_message_has_the_type_that_is_documented() -> None:
    made = schema(*selection(",".join(COLUMNS)).schema())
    utf8, micros = pa.string(), pa.timestamp("us", tz="UTC")
    fields = {
        "content_type": utf8,
        "content_encoding": utf8,
        "delivery_mode": pa.int32(),
        "priority": pa.int32(),
        "correlation_id": utf8,
        "reply_to": utf8,
        "expiration": utf8,
        "message_id": utf8,
        "timestamp": micros,
        "type": utf8,
        "user_id": utf8,
        "app_id": utf8,
        "cluster_id": utf8,
    }
    assert made.equals(
        pa.schema(
            {
                "value": pa.binary(),
                "routing_key": utf8,
                "exchange": utf8,
                "queue": utf8,
                "offset": pa.int64(),
                "timestamp": micros,
                "redelivered": pa.bool_(),
                "delivery_count": pa.int32(),
                "properties": pa.struct(fields),
                "headers": pa.map_(utf8, utf8),
                "headers_json": utf8,
                "headers_raw": pa.binary(),
            }
        )
    )
