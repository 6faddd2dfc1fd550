"""Fuzzing what makes rows of messages: any record and any property list end as a valid batch."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from harebell.base.message import Message, Properties
from harebell.kernels.batches import BatchBuilder
from harebell.kernels.records import RecordBuffer, append_to
from harebell.wire.arrow.columns import COLUMNS, FIELDS, ArrowSelection, selection
from harebell.wire.arrow.encode import record_batch, schema_message
from harebell.wire.v09.content import BasicProperties, encode_properties
from harebell.wire.v09.header_texts import count_of, headers_of, json_of

_ALL = ArrowSelection(tuple(COLUMNS), tuple(FIELDS))
_PLENTY = 10**9


def _basic(message: Message) -> Message:
    """In place of a conversion, which has targets of its own."""
    return Message(message.exchange, message.routing_key, Properties(b"\0\0"), message.body)


def _builder() -> BatchBuilder:
    made = BatchBuilder(
        _ALL.columns,
        _ALL.fields,
        "q",
        headers_of,
        json_of,
        count_of,
        _basic,
    )
    made.limit(_PLENTY, _PLENTY, _PLENTY)
    return made


def _valid(builder: BatchBuilder) -> None:
    """Arrow accepts what was built."""
    schema = pa.ipc.read_schema(pa.py_buffer(schema_message(_ALL.schema())))
    data = record_batch(*builder.finish(), None)
    pa.ipc.read_record_batch(pa.py_buffer(data), schema).validate(full=True)


def rows(data: bytes) -> None:
    """Any property list, from a message or from its record, becomes the same valid row."""
    message = Message("e", "k", Properties(data), b"body")
    direct, stored = _builder(), _builder()
    records = RecordBuffer(0, 1)
    records.message(0, 0, message, True)
    direct.message(message, 0)
    assert records.append_to(0, 0, stored)
    made = direct.finish()
    assert made == stored.finish()
    direct.message(message, 0)
    _valid(direct)


def stored(data: bytes) -> None:
    """Octets that are taken for a record without a look at their checksum are refused or a row."""
    builder = _builder()
    append_to(data, 0, 0, -1, builder)
    _valid(builder)


def columns(data: bytes) -> None:
    """Names of columns are refused, or say what they were read from."""
    try:
        wanted = selection(data.decode(errors="replace"))
    except ValueError:
        return
    assert selection(wanted.text()) == wanted
    schema_message(wanted.schema())


def batch_seeds(target: str) -> list[bytes]:
    """The inputs that a target of this file starts with."""
    full = encode_properties(
        BasicProperties(
            content_type="a/b",
            headers={"a": 1, "b": [1, {"c": None}], "x-delivery-count": 3},
            priority=1,
            message_id="m",
        )
    )
    if target == "rows":
        return [full, b"\0\0"]
    if target == "stored":
        records = RecordBuffer(0, 1)
        records.message(7, 8, Message("e", "k", Properties(full), b"body"), True)
        return [records.take()]
    return [_ALL.text().encode(), b"value,properties.app_id", b"properties"]


TARGETS: tuple[Callable[[bytes], None], ...] = (rows, stored, columns)
