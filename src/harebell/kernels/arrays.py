"""Make Arrow arrays of Python values with pyarrow; `arrays.pyx` makes the same octets in C.

A row is a dictionary: the value of each column. Only this half of the pair needs pyarrow, so an
uncompiled broker without it does everything but answer reads of record batches.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from harebell.base.errors import HarebellError
from harebell.base.row_columns import PROPERTY_NAMES
from harebell.kernels.limits import COLUMN_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

Buffers = list[bytes | None]
Nodes = list[tuple[int, int]]
Kinds = dict[str, "pa.DataType"]
Row = dict[str, Any]
CountOf = Callable[[bytes, bool], int]
HeadersOf = Callable[[bytes], Iterable[tuple[bytes, bytes | None]]]

_FIRST_FLAG = 0x8000
_COUNT_NAME = b"\x10x-delivery-count"
_MICROS = 1_000_000
_LAST_SECOND = (2**63 - 1) // _MICROS


def kinds_of(columns: Sequence[str], fields: Sequence[str]) -> Kinds:
    """Return pyarrow's type of each column, in their order; times are numbers here.

    Args:
        columns: the names of the columns.
        fields: those of the fields of `properties`.

    Raises:
        ValueError: pyarrow is not installed; the text says what to do.
    """
    try:
        import pyarrow as pa  # an optional library
    except ImportError as error:
        raise ValueError(
            "record batches need pyarrow where Harebell runs without its compiled parts: pip "
            "install pyarrow, or install Harebell with a C compiler"
        ) from error
    text, small, large = pa.string(), pa.int32(), pa.int64()
    numbers = {"delivery_mode": small, "priority": small, "timestamp": large}
    others = {
        "value": pa.binary(),
        "offset": large,
        "timestamp": large,
        "redelivered": pa.bool_(),
        "delivery_count": small,
        "properties": pa.struct([(name, numbers.get(name, text)) for name in fields]),
        "headers": pa.map_(text, text),
        "headers_raw": pa.binary(),
    }
    return {name: others.get(name, text) for name in columns}


def arrays_of(rows: list[Row], kinds: Kinds) -> list[pa.Array]:
    """Return an array per column.

    Raises:
        HarebellError: a buffer is larger than offsets of 31 bits reach.
    """
    import pyarrow as pa

    arrays = [pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()]
    for array in arrays:
        # pyarrow divides an array whose octets have no offsets.
        if isinstance(array, pa.ChunkedArray) or any(
            buffer is not None and buffer.size > COLUMN_BYTES for buffer in array.buffers()
        ):
            raise HarebellError(
                f"one column of a record batch would hold {array.nbytes} octets, and the most is "
                f"{COLUMN_BYTES}"
            )
    return arrays


def buffers_of(array: pa.Array) -> Buffers:
    """Return the octets of an array and of those within it; None for a validity without nulls."""
    return [None if buffer is None else buffer.to_pybytes() for buffer in array.buffers()]


def nodes_of(array: pa.Array) -> Nodes:
    """Return (rows, nulls) of an array and of those within it; a map has an array of entries."""
    import pyarrow as pa

    nodes, within = [(len(array), array.null_count)], []
    if isinstance(array, pa.MapArray):
        nodes.append((len(array.keys), 0))
        within = [array.keys, array.items]
    elif isinstance(array, pa.StructArray):
        within = array.flatten()
    return [*nodes, *(node for each in within for node in nodes_of(each))]


def checked(text: bytes) -> bytes:
    """Return a peer's text; what is no UTF-8 is shown in base64, as Arrow's strings are UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return b"base64:" + b64encode(text)
    return text


def count_in(table: bytes | None, count_of: CountOf, again: bool) -> int:
    """Return the delivery count in a header table, or that of a message without one."""
    # Searched first: decoding a table takes much longer, and few messages have the header.
    return count_of(table, again) if table and _COUNT_NAME in table else int(again)


def split_properties(raw: bytes) -> Row | None:
    """Return the value of every property that is present; None for a list that is cut off.

    Texts and the header table are octets, times microseconds since 1970. Times beyond 63 bits are
    left out.
    """
    if len(raw) < 2:
        return None
    flags = int.from_bytes(raw[:2])
    values: Row = {}
    offset = 2
    for number, name in enumerate(PROPERTY_NAMES):
        if not flags & (_FIRST_FLAG >> number):
            continue
        if offset >= len(raw):
            return None
        # AMQP 0-9-1 4.2.5: a table has a size of four octets, a text of one.
        width = {"headers": 4, "delivery_mode": 0, "priority": 0, "timestamp": 0}.get(name, 1)
        start = offset + width
        fixed = 8 if name == "timestamp" else 1
        offset = start + (int.from_bytes(raw[offset:start]) if width else fixed)
        if offset > len(raw):
            return None
        value = raw[start:offset]
        if width:
            values[name] = value if name == "headers" else checked(value)
        elif name != "timestamp":
            values[name] = value[0]
        elif int.from_bytes(value) <= _LAST_SECOND:
            values[name] = int.from_bytes(value) * _MICROS
    return values
