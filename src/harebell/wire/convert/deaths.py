"""The history of a dead letter: the header `x-death`, and the annotation `x-opt-deaths` of 1.0.

x-death: array of tables            x-opt-deaths: array of maps with symbols as keys
queue exchange                      the same
reason                              reason, a symbol
count (long)                        count, a ulong
time                                first-time
last-time, if it is another         last-time
routing-keys: array of texts        routing-keys: array of strings
condition                           the same, a symbol
description                         the same
original-expiration: digits         ttl: uint
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from harebell.base.expiration import ttl_in
from harebell.base.values import Long
from harebell.wire.convert.names_1_0 import X_DEATH
from harebell.wire.convert.values_1_0 import FieldMaker, LongName, put_sized, put_uint
from harebell.wire.v09.fields import encode_entry, read_value

LAST_TIME = "last-time"
_UINT_MAX = (1 << 32) - 1
_MS = 1000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KNOWN = {
    *("queue", "exchange", "reason", "count", "time", "routing-keys", "original-expiration"),
    *(LAST_TIME, "condition", "description"),
}
_STRING8, _SYMBOL8, _MAP32, _ARRAY32 = 0xA1, 0xA3, 0xD1, 0xF0


def to_header(data: bytes, offset: int, after: int) -> tuple[bytes, bool] | None:
    """Convert an annotation to an entry of a header table.

    Args:
        data: octets that contain the encoded value of the annotation.
        offset: of the value.
        after: the offset after it.

    Returns:
        The entry, and whether the way back gives the same octets; None if the value is no history.
    """
    table = bytearray()
    try:
        FieldMaker().put(table, data, offset, after)
    except LongName:
        return None
    events, _ = read_value(bytes(table), 0, len(table), 1)
    if not isinstance(events, list):
        return None
    made = [_to_event(event) for event in events]
    if not made or any(event is None for event in made):
        return None
    entry = encode_entry(X_DEATH.decode(), made)
    return entry, to_annotation(made) == data[offset:after]


def _to_event(event: Any) -> dict[str, Any] | None:
    if not isinstance(event, dict) or event.keys() - {*_KNOWN - {"time"}, "first-time", "ttl"}:
        return None
    given = dict(event)
    first, last = given.pop("first-time", None), given.pop(LAST_TIME, None)
    ttl = given.pop("ttl", None)
    made: dict[str, Any] = {}
    if ttl is not None:
        made["original-expiration"] = str(ttl)
    made["count"] = Long(given.pop("count", 0))
    made["reason"] = given.pop("reason", None)
    made["queue"] = given.pop("queue", None)
    made["time"] = first
    if last != first:
        made[LAST_TIME] = last
    made["exchange"] = given.pop("exchange", None)
    made["routing-keys"] = given.pop("routing-keys", None)
    made |= {name: given.pop(name) for name in ("condition", "description") if name in given}
    return made if not given and _valid(made) else None


def to_annotation(events: Any) -> bytes | None:
    """Convert the value of a header to the encoded value of an annotation.

    Args:
        events: the decoded header.

    Returns:
        The octets; None if the header is no history as the broker writes it.
    """
    if not isinstance(events, list) or not events or not all(map(_valid, events)):
        return None
    content = bytearray((_MAP32,))
    for event in events:
        encoded = _encoded(event)
        content += len(encoded).to_bytes(4) + encoded
    return _array(len(events), content)


def _array(count: int, content: bytes | bytearray) -> bytes:
    """Return an array of elements that begins with their constructor."""
    octets = count.to_bytes(4) + content
    return bytes((_ARRAY32,)) + len(octets).to_bytes(4) + octets


def _valid(event: Any) -> bool:
    """True for an event as the broker writes it."""
    if not isinstance(event, Mapping) or event.keys() - _KNOWN:
        return False
    keys, count = event.get("routing-keys"), event.get("count")
    expiration = event.get("original-expiration", "0")
    return (
        all(isinstance(event.get(name), str) for name in ("queue", "exchange", "reason"))
        and event["reason"].isascii()
        and isinstance(event.get("condition", ""), str)
        and event.get("condition", "").isascii()
        and isinstance(event.get("description", ""), str)
        and isinstance(count, int)
        and not isinstance(count, bool)
        and count > 0
        and isinstance(event.get("time"), datetime)
        and isinstance(event.get(LAST_TIME, event["time"]), datetime)
        and isinstance(keys, list | tuple)
        and all(isinstance(key, str) for key in keys)
        and isinstance(expiration, str)
        and expiration.isdecimal()
        and str(ttl_in(expiration, _UINT_MAX)) == expiration
    )


def _encoded(event: Mapping[str, Any]) -> bytes:
    """Return count and entries of the map of an event."""
    out = bytearray()
    _key(out, "queue")
    put_sized(out, _STRING8, event["queue"].encode())
    _key(out, "reason")
    put_sized(out, _SYMBOL8, event["reason"].encode())
    _key(out, "count")
    if event["count"] <= 255:
        out += bytes((0x53, event["count"]))
    else:
        out += b"\x80" + int(event["count"]).to_bytes(8)
    _key(out, "first-time")
    out += _time(event["time"])
    _key(out, LAST_TIME)
    out += _time(event.get(LAST_TIME, event["time"]))
    _key(out, "exchange")
    put_sized(out, _STRING8, event["exchange"].encode())
    _key(out, "routing-keys")
    content = bytearray(b"\xb1")
    for key in event["routing-keys"]:
        octets = key.encode()
        content += len(octets).to_bytes(4) + octets
    out += _array(len(event["routing-keys"]), content)
    count = 14
    if "condition" in event:
        _key(out, "condition")
        put_sized(out, _SYMBOL8, event["condition"].encode())
        count += 2
    if "description" in event:
        _key(out, "description")
        put_sized(out, _STRING8, event["description"].encode())
        count += 2
    if "original-expiration" in event:
        _key(out, "ttl")
        put_uint(out, int(event["original-expiration"]))
        count += 2
    return count.to_bytes(4) + bytes(out)


def _key(out: bytearray, name: str) -> None:
    put_sized(out, _SYMBOL8, name.encode())


def _time(moment: datetime) -> bytes:
    seconds = int((moment - _EPOCH).total_seconds())
    return b"\x83" + (seconds * _MS).to_bytes(8, signed=True)
