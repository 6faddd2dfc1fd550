"""Parse the JSON bodies of messages with Spark: one object each, or several.

Spark's parser stops at the end of the first value. So a text is parsed as the only element of an
array inside of an object, with a name behind it that no publisher can guess, and which is found
only if nothing has closed that object before:

    {"r":[TEXT],"n3f9c...":1}

`{}],"more":[{}` would be well-formed there, but not without the brackets; texts in which an array
ends like this are parsed without them, too:

    {"r":TEXT,"n3f9c...":1}

The column `value` with `bodyFormat` (`spark/reading/rows/bodies.py`) takes the same bodies.
"""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING

from harebell.pipeline.spec.description import MANY, Body

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_PARTS = "_harebell_parts"
_WRAPPED, _ALONE, _CORRUPT, _OBJECTS = "wrapped", "alone", "corrupt", "r"
_BEHIND = f"n{secrets.token_hex(12)}"
_FOLLOWED = r'\}\s*\]\s*,\s*"'
_STRICT = {
    "mode": "PERMISSIVE",
    "columnNameOfCorruptRecord": _CORRUPT,
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
}
# Only the ends of the values are of use; a number of any length stays a text.
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
_BLANK = " \t\r\n"


def parsed(frame: DataFrame, body: Body, data: str) -> DataFrame:
    """Add a column with the object of each body, null if the body is bad.

    With several objects per body a row becomes one per object; a body with a bad object stays one
    row, so that it is used, or dead-lettered, as a whole.

    Args:
        frame: rows with bodies in `value`.
        body: how to decode them.
        data: name of the new column.
    """
    from pyspark.sql import functions as f

    # Jackson would read bytes that are not UTF-8.
    text = f.expr("try_validate_utf8(CAST(value AS STRING))")
    part = f.col(_PARTS)
    # Spark would copy an expression to every use of a field, and parse every body again for each.
    # Exploding an array of one value prevents that.
    if body.objects == MANY:
        split = f.udf(objects_of, "ARRAY<STRING>", useArrow=False)
        parts = f.transform(split(text), lambda each: _part(each, body.schema))
        exploded = frame.select("*", f.explode(f.array(parts)).alias(_PARTS))
        good = (f.size(part) > 0) & f.forall(part, _is_object)
        rows = f.explode(f.when(good, part).otherwise(f.array(f.lit(None))))
        exploded = exploded.withColumn(_PARTS, rows)
    else:
        exploded = frame.select("*", f.explode(f.array(_part(text, body.schema))).alias(_PARTS))
    value = f.when(_is_object(part), part[_WRAPPED][_OBJECTS][0])
    return exploded.withColumn(data, value).drop(_PARTS)


def _part(text: Column, schema: str) -> Column:
    """Return a text that was parsed as an element of an array, and where necessary alone."""
    from pyspark.sql import functions as f

    behind = f'"{_BEHIND}":1}}'
    element = f.concat(f.lit(f'{{"{_OBJECTS}":['), text, f.lit(f"],{behind}"))
    kind = f"{_OBJECTS} ARRAY<STRUCT<{schema}>>, {_BEHIND} INT, {_CORRUPT} STRING"
    alone = f.concat(f.lit(f'{{"{_OBJECTS}":'), text, f.lit(f",{behind}"))
    checked = f.from_json(alone, f"{_BEHIND} INT, {_CORRUPT} STRING", _STRICT)[_BEHIND]
    return f.struct(
        f.from_json(element, kind, _STRICT).alias(_WRAPPED),
        f.when(text.rlike(_FOLLOWED), checked).otherwise(1).alias(_ALONE),
    )


def _is_object(part: Column) -> Column:
    """Return whether a part is exactly one JSON object with values of the schema."""
    from pyspark.sql import functions as f

    wrapped = part[_WRAPPED]
    one = (f.size(wrapped[_OBJECTS]) == 1) & wrapped[_OBJECTS][0].isNotNull()
    ended = wrapped[_BEHIND].isNotNull() & part[_ALONE].isNotNull()
    return f.coalesce(wrapped[_CORRUPT].isNull() & ended & one, f.lit(False))


def objects_of(text: str | None) -> list[str] | None:
    """Split a text into its JSON values, with nothing or white space between them.

    Returns:
        The texts of the values; None if a part of the text is no JSON.
    """
    if text is None:
        return None
    objects = []
    position = _after_blanks(text, 0)
    while position < len(text):
        try:
            _, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            return None
        objects.append(text[position:end])
        position = _after_blanks(text, end)
    return objects


def _after_blanks(text: str, position: int) -> int:
    while position < len(text) and text[position] in _BLANK:
        position += 1
    return position
