"""Decode bodies as text or JSON: the column `value` with `bodyFormat`.

The bodies of a record batch are parsed together by Arrow's JSON reader. It reads lines, and bodies
can contain any bytes, so every body is wrapped together with its number under a random name,
which a publisher cannot guess:

    {"r":BODY,"n3f9c...":17}

If Arrow reads exactly the numbers that were written, every row was parsed from its own body.
Otherwise, or if Arrow reports an error, the bodies are split in halves until the bad ones are
found.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from harebell.base.errors import HarebellError
from harebell.spark.options.source_options import JSON, TEXT

CORRUPT = "_corrupt_record"
"""The column for bodies that are not JSON of the given schema; Spark's own name for it."""
PERMISSIVE, DROP, FAIL = "PERMISSIVE", "DROPMALFORMED", "FAILFAST"

_NUMBER = f"n{secrets.token_hex(12)}"
_SLACK = 64
_FOLLOWED = r'\}\s*,\s*"'
"""An object that a name follows: of a member behind it, or of one behind the whole body."""
_Parsed = tuple[pa.Array, list[tuple[int, str]]]
"""The values, null where the body is bad, and the error of each bad body."""


class BodyError(HarebellError):
    """A body is invalid, and the mode is to fail then."""


def raw_schema(schema: pa.Schema, body_format: str) -> pa.Schema:
    """Return the schema as the broker sends it, for a schema as Spark expects it."""
    fields = []
    for field in schema:
        if body_format != "binary" and field.name == "value":
            fields.append(pa.field("value", pa.binary(), field.nullable))
        elif body_format != JSON or field.name != CORRUPT:
            fields.append(field)
    return pa.schema(fields)


def decoded(
    batch: pa.RecordBatch, schema: pa.Schema, body_format: str, mode: str
) -> pa.RecordBatch:
    """Decode the bodies of a record batch.

    Args:
        batch: as the broker sent it.
        schema: the schema that Spark expects.
        body_format: text or json.
        mode: PERMISSIVE, DROP or FAIL.

    Raises:
        BodyError: a body is bad and the mode is FAIL.
    """
    index = batch.schema.get_field_index("value")
    if index < 0:
        return batch
    raw = batch.column(index)
    values, bad = (
        _text(raw) if body_format == TEXT else json_values(raw, schema.field("value").type)
    )
    if bad and mode == FAIL:
        raise BodyError(_complaint(batch, *bad[0], body_format))
    columns = {name: batch.column(number) for number, name in enumerate(batch.schema.names)} | {
        "value": values
    }
    if CORRUPT in schema.names and body_format == JSON:
        columns[CORRUPT] = _corrupt(raw, bad)
    made = pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)
    if bad and mode == DROP:
        rows = {row for row, _ in bad}
        made = made.filter(pa.array([row not in rows for row in range(made.num_rows)]))
    return made


def json_problem(kind: pa.DataType) -> str | None:
    """Return why JSON bodies cannot be parsed as this type; None if they can."""
    if pa.types.is_struct(kind):
        problems = (json_problem(field.type) for field in kind)
        return next((problem for problem in problems if problem), None)
    if pa.types.is_list(kind):
        return json_problem(kind.value_type)
    if pa.types.is_map(kind):
        return f"a {kind} (name its keys in a STRUCT)"
    readable: tuple[Callable[[pa.DataType], bool], ...] = (
        pa.types.is_integer,
        pa.types.is_floating,
        pa.types.is_boolean,
        pa.types.is_string,
        pa.types.is_decimal,
        pa.types.is_timestamp,
        pa.types.is_date,
    )
    return None if any(check(kind) for check in readable) else f"a {kind}"


# --- text ---------------------------------------------------------------------------------------


def _text(values: pa.Array) -> _Parsed:
    try:
        return values.cast(pa.string()), []
    except pa.ArrowInvalid:
        pass
    # The slow path, for invalid UTF-8 only: replace what is invalid by U+FFFD.
    bad = []
    texts = []
    for row, data in enumerate(values.to_pylist()):
        try:
            texts.append(data.decode())
        except UnicodeDecodeError as error:
            texts.append(data.decode(errors="replace"))
            bad.append((row, f"it is not UTF-8: {error.reason} at byte {error.start}"))
    return pa.array(texts, pa.string()), bad


# --- JSON ---------------------------------------------------------------------------------------


def json_values(values: pa.Array, wanted: pa.StructType) -> _Parsed:
    """Parse values as JSON objects."""
    bad: list[tuple[int, str]] = []
    parts = _parts(values, 0, wanted, _readable(wanted), bad)
    return pa.concat_arrays(parts) if parts else pa.nulls(0, wanted), bad


def _parts(
    values: pa.Array,
    first: int,
    wanted: pa.StructType,
    readable: pa.DataType,
    bad: list[tuple[int, str]],
) -> list[pa.Array]:
    """Parse the values in pieces, each as a whole."""
    if not len(values):
        return []
    try:
        return [_parse(values, readable).cast(wanted)]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        if len(values) == 1:
            bad.append((first, str(error).replace("JSON parse error: ", "")))
            return [pa.nulls(1, wanted)]
    # Halves: a few bad bodies among many cost a few more calls of Arrow, not one per body.
    half = len(values) // 2
    first_half = _parts(values.slice(0, half), first, wanted, readable, bad)
    return first_half + _parts(values.slice(half), first + half, wanted, readable, bad)


def _parse(values: pa.Array, readable: pa.DataType) -> pa.Array:
    """Parse all values at once.

    Raises:
        ArrowInvalid: one of them is bad.
    """
    # Arrow's reader would accept bytes that are not UTF-8.
    values.cast(pa.string())
    column = _read(values, b'{"r":', b",", readable).column("r").combine_chunks()
    chunk = column.chunk(0) if isinstance(column, pa.ChunkedArray) else column
    if chunk.null_count:
        raise pa.ArrowInvalid("it is null, and no JSON object")
    # `{},"more":1` would be well-formed inside the wrapper, but not as an element of an array.
    more = values.filter(pc.match_substring_regex(values, _FOLLOWED))
    if len(more):
        _read(more, b'{"r":[', b"],", None)
    return chunk


def _read(values: pa.Array, before: bytes, after: bytes, readable: pa.DataType | None) -> pa.Table:
    """Parse wrapped values with Arrow, each with its number.

    Args:
        values: bodies, each a value of JSON.
        before: the text before each value.
        after: the text after it, before the number.
        readable: their type; None to check them only.

    Raises:
        ArrowInvalid: one of them is bad.
    """
    rows = len(values)
    numbers = pa.array(range(rows), pa.int64())
    digits = numbers.cast(pa.string()).cast(pa.binary())
    name = after + f'"{_NUMBER}":'.encode()
    lines = pc.binary_join_element_wise(before, values, name, digits, b"}\n", b"")
    # The offsets of the joined lines; the last one is the size of them all.
    ends = pa.Array.from_buffers(pa.int32(), rows + 1, [None, lines.buffers()[1]])
    size = ends[rows].as_py()
    columns = [(_NUMBER, pa.int64())]
    table = pj.read_json(
        pa.BufferReader(lines.buffers()[2].slice(0, size)),
        # One block: Arrow cuts blocks at line ends, and bodies may have some inside.
        read_options=pj.ReadOptions(use_threads=False, block_size=size + _SLACK),
        parse_options=pj.ParseOptions(
            explicit_schema=pa.schema(columns if readable is None else [("r", readable), *columns]),
            newlines_in_values=True,
            unexpected_field_behavior="ignore",
        ),
    )
    if table.num_rows != rows or not table.column(_NUMBER).combine_chunks().equals(numbers):
        raise pa.ArrowInvalid("it is not one JSON value")
    return table


def _readable(kind: pa.DataType) -> pa.DataType:
    """Return the type with text in place of the types that Arrow's JSON reader lacks."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, _readable(field.type)) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_readable(kind.value_type))
    # Arrow casts texts to dates, but its JSON reader does not read them.
    return pa.string() if pa.types.is_date(kind) else kind


def _corrupt(raw: pa.Array, bad: list[tuple[int, str]]) -> pa.Array:
    if not bad:
        return pa.nulls(len(raw), pa.string())
    texts: list[str | None] = [None] * len(raw)
    for row, _ in bad:
        texts[row] = raw[row].as_py().decode(errors="replace")
    return pa.array(texts, pa.string())


def _complaint(batch: pa.RecordBatch, row: int, reason: str, body_format: str) -> str:
    place = []
    for name in ("queue", "offset", "routing_key"):
        if name in batch.schema.names:
            place.append(f"{name} {batch.column(name)[row].as_py()!r}")  # noqa: PERF401
    where = f" ({', '.join(place)})" if place else ""
    wanted = "UTF-8 text" if body_format == TEXT else "JSON of the schema"
    return f"the body of a message{where} is no {wanted}: {reason}; mode=PERMISSIVE reads on"
