"""Header tables as text, for the columns `headers map<string,string>` and `headers_json`.

    type of the header        text
    string                    as it is
    string that is no UTF-8   base64:...
    octets                    base64:...
    integer                   decimal digits
    boolean                   true, false
    float, double             shortest digits that give the same number (of a double)
    decimal                   its digits, 12.50
    timestamp                 2013-01-01T05:00:00Z; a bare number where a calendar ends (year 9999)
    void                      null
    table, array              JSON without spaces, the values inside by the same rules

The AMQP type is lost on the way. It is kept in the JSON of `headers_json`: numbers, booleans, text,
tables, arrays and void are JSON's own, and what JSON has no word for is an object with one member:

    octets, text that is no UTF-8     {"$binary": "base64"}
    timestamp                         {"$timestamp": 1357016400}, seconds since 1970
    decimal                           {"$decimal": "12.50"}
    a double that is no number        {"$double": "nan"}, "inf", "-inf"
    a table with one name, which begins with $    {"$table": {...}}

The body and the properties are not touched by this.
"""

from __future__ import annotations

import json
import math
from base64 import b64encode
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any

from harebell.wire.v09.fields import Timestamp, decode_table

_COUNT = "x-delivery-count"
_INT32_MAX = 2**31 - 1
_JSON: dict[str, Any] = {"ensure_ascii": False, "separators": (",", ":"), "allow_nan": False}


def headers_of(table: bytes) -> list[tuple[bytes, bytes | None]]:
    """Return names and texts of a header table without its size; the last of equal names counts.

    Raises:
        ProtocolError: it is no table.
    """
    return [
        (_octets(name), None if value is None else _octets(text_of(value)))
        for name, value in _decoded(table).items()
    ]


def json_of(table: bytes) -> bytes:
    """Return a header table, given without its size, as JSON that keeps the types.

    Raises:
        ProtocolError: it is no table.
    """
    return _octets(json.dumps(_members(_decoded(table)), **_JSON))


def count_of(table: bytes, redelivered: bool) -> int:
    """Return how often a message was delivered before, by its header or else by the flag."""
    return bounded_count(_decoded(table), redelivered=redelivered)


def bounded_count(headers: Mapping[str, Any], *, redelivered: bool) -> int:
    """Return the count of a decoded header table; 0 or 1 if it has none."""
    # A publisher can write anything into the header; the column has 32 bits.
    count = headers.get(_COUNT)
    if isinstance(count, bool) or not isinstance(count, int):
        return int(redelivered)
    return max(0, min(count, _INT32_MAX))


def text_of(value: Any) -> str:
    """Return one header as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict | list):
        return json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
    # Before numbers, as a bool is an int in Python.
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return "base64:" + b64encode(value).decode()
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%dT%H:%M:%SZ")
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return repr(value)
    # int(): a Timestamp too late for a calendar is a kind of int.
    return str(int(value))


def _plain(value: Any) -> Any:
    """Return a header as a value of JSON; types that JSON lacks become their text."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        return {_octets(name).decode(): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and math.isfinite(value):
        return value
    if isinstance(value, int):
        return int(value)
    return text_of(value)


def _members(table: dict[str, Any]) -> dict[str, Any]:
    return {_octets(name).decode(): _typed(value) for name, value in table.items()}


def _typed(value: Any) -> Any:
    """Return a header as a value of JSON that shows its type."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, dict):
        members = _members(value)
        # Such a table would look like one of the objects that stand for a type.
        ambiguous = len(members) == 1 and next(iter(members)).startswith("$")
        return {"$table": members} if ambiguous else members
    if isinstance(value, list):
        return [_typed(inner) for inner in value]
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return {"$binary": b64encode(value).decode()}
    if isinstance(value, datetime):
        return {"$timestamp": int(value.timestamp())}
    if isinstance(value, Timestamp):
        return {"$timestamp": int(value)}
    if isinstance(value, Decimal):
        return {"$decimal": format(value, "f")}
    if isinstance(value, float):
        return value if math.isfinite(value) else {"$double": repr(value)}
    return int(value)


def _decoded(table: bytes) -> dict[str, Any]:
    return decode_table(len(table).to_bytes(4) + table)[0]


def _octets(text: str) -> bytes:
    """Return a text in UTF-8; one with octets that are no UTF-8 in base64."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return b"base64:" + b64encode(text.encode(errors="surrogateescape"))
