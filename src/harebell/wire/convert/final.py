"""Convert between class basic and the header segment of final 0-10.

    basic                                     delivery-properties
    delivery-mode priority timestamp          the fields of the same names
    expiration                                ttl; header x-amqp-expiration if it is not a number
    header x-amqp-expires-at                  expiration (a moment)
    header x-amqp-resume-id, -resume-ttl      resume-id, resume-ttl

    basic                                     message-properties
    content-type content-encoding             the fields of the same names
    user-id app-id correlation-id             the same; header x-amqp-... when longer than 255
    message-id                                message-id when it is a UUID, else a header
    reply-to                                  reply-to's routing-key, with the default exchange
    header x-amqp-reply-exchange            reply-to's exchange
    headers                                   application-headers
    type cluster-id                           headers x-amqp-type, x-amqp-cluster-id
    header x-amqp-structs                     any other struct, unchanged
    header x-amqp-unreadable                  a malformed header segment, unchanged

Exchange and routing key are stored with the message, and are inserted at delivery. Fields that
only concern one transfer are dropped: discard-unroutable, immediate and redelivered. And
content-length follows from the body.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from harebell.base.errors import ProtocolError
from harebell.base.expiration import ttl_in
from harebell.base.limits import NAME_BYTES
from harebell.base.message import FAMILY_010, Message, Properties, new_message
from harebell.kernels.header_structs import NO_BODY
from harebell.wire.convert.maps import to_map, to_table
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.edit import headers_span
from harebell.wire.v09.fields import Timestamp, encode_table, entries, read_timestamp

EXPIRATION = "x-amqp-expiration"
EXPIRES_AT = "x-amqp-expires-at"
RESUME_ID = "x-amqp-resume-id"
RESUME_TTL = "x-amqp-resume-ttl"
REPLY_EXCHANGE = "x-amqp-reply-exchange"
MESSAGE_ID = "x-amqp-message-id"
TYPE = "x-amqp-type"
CLUSTER_ID = "x-amqp-cluster-id"
STRUCTS = "x-amqp-structs"
UNREADABLE = "x-amqp-unreadable"
LONG = {
    name: f"x-amqp-{name.replace('_', '-')}" for name in ("correlation_id", "user_id", "app_id")
}
"""Headers for values that are longer than basic allows."""

_DELIVERY, _MESSAGE = b"\x04\x01", b"\x04\x03"
_HEAD = 8
_UINT64_MAX = (1 << 64) - 1
_INT64_MAX = (1 << 63) - 1
_STR16_BYTES = (1 << 16) - 1

# The fields of the two structs in order: bytes of a value, or minus the bytes of its length.
_DELIVERY_FIELDS = (
    ("discard_unroutable", 0),
    ("immediate", 0),
    ("redelivered", 0),
    ("priority", 1),
    ("delivery_mode", 1),
    ("ttl", 8),
    ("timestamp", 8),
    ("expiration", 8),
    ("exchange", -1),
    ("routing_key", -1),
    ("resume_id", -2),
    ("resume_ttl", 8),
)
_MESSAGE_FIELDS = (
    ("content_length", 8),
    ("message_id", 16),
    ("correlation_id", -2),
    ("reply_to", -2),
    ("content_type", -1),
    ("content_encoding", -1),
    ("user_id", -2),
    ("app_id", -2),
    ("application_headers", -4),
)
_REPLY_TO_FIELDS = (("exchange", -1), ("routing_key", -1))
_Fields = tuple[tuple[str, int], ...]

_EMPTY_TABLE = 4
_HEADERS_FLAG = 1 << 13


# --- from 0-10 ----------------------------------------------------------------------------------


def to_basic(message: Message) -> Message:
    """Convert a message of 0-10 to class basic."""
    try:
        properties = parse_properties(_basic(message.raw))
    except (ValueError, IndexError, ProtocolError):
        # A malformed table of the publisher is kept in a header that peers need not parse.
        basic_properties = BasicProperties(
            delivery_mode=message.delivery_mode or None,
            priority=message.priority if message.priority >= 0 else None,
        )
        raw = _with_table(encode_properties(basic_properties), _entry(UNREADABLE, message.raw))
        properties = parse_properties(raw)
    return new_message(message.exchange, message.routing_key, properties, message.body)


def _basic(raw: bytes) -> bytes:
    """Return the property list of basic.

    Raises:
        ValueError, IndexError, ProtocolError: the header segment is malformed.
    """
    delivery: dict[str, bytes] = {}
    given: dict[str, bytes] = {}
    others = b""
    for code, begin, end in _structs(raw):
        if code == _DELIVERY and not delivery:
            delivery = _read(raw, begin, end, _DELIVERY_FIELDS)
        elif code == _MESSAGE and not given:
            given = _read(raw, begin, end, _MESSAGE_FIELDS)
        else:
            # With its size in front (`begin` is behind size and code): it is repeated as it is.
            others += raw[begin - _HEAD + 2 : end]
    basic_properties = BasicProperties()
    table = to_table(given["application_headers"]) if given.get("application_headers") else b""
    kept, restored = _restored(table)
    extra_headers = _from_delivery(delivery, restored, basic_properties)
    extra_headers |= _from_message(given, basic_properties)
    for name in ("type", "cluster_id", "message_id"):
        text = restored.get(f"x-amqp-{name.replace('_', '-')}")
        if text is not None and getattr(basic_properties, name) is None:
            setattr(basic_properties, name, text)
    # The broker's own mark of a message without body segment is no struct of the publisher.
    others = others.removesuffix(NO_BODY)
    if others:
        extra_headers[STRUCTS] = others
    entry = b"".join(_entry(name, value) for name, value in extra_headers.items())
    return _with_table(encode_properties(basic_properties), kept + entry)


def _restored(table: bytes) -> tuple[bytes, dict[str, str]]:
    """Return a table without the headers that stand for properties of basic, and these headers."""
    kept = b""
    restored: dict[str, str] = {}
    sized = len(table).to_bytes(4) + table
    for name, begin, end in entries(sized, 0):
        key = name.decode(errors="surrogateescape")
        value = _short_text(sized, begin + 1 + len(name), end)
        if key in (TYPE, CLUSTER_ID, MESSAGE_ID, EXPIRATION) and value is not None:
            restored[key] = value
        else:
            kept += sized[begin:end]
    return kept, restored


def _short_text(data: bytes, offset: int, end: int) -> str | None:
    """Return the text at a tag, if it fits basic."""
    # Behind the tag is a size of four bytes; a short string of basic has 255 bytes at most. AMQP
    # 0-10 has it as octets if it is not UTF-8.
    if data[offset : offset + 1] not in (b"S", b"x") or end - offset - 5 > NAME_BYTES:
        return None
    return data[offset + 5 : end].decode(errors="surrogateescape")


def _from_delivery(
    delivery: Mapping[str, bytes], restored: Mapping[str, str], basic_properties: BasicProperties
) -> dict[str, Any]:
    """Copy the delivery properties; return what basic lacks, for its headers."""
    extra_headers: dict[str, Any] = {}
    if "priority" in delivery:
        basic_properties.priority = delivery["priority"][0]
    if "delivery_mode" in delivery:
        basic_properties.delivery_mode = delivery["delivery_mode"][0]
    if "ttl" in delivery:
        basic_properties.expiration = str(int.from_bytes(delivery["ttl"]))
    basic_properties.expiration = restored.get(EXPIRATION, basic_properties.expiration)
    if "timestamp" in delivery:
        basic_properties.timestamp = read_timestamp(int.from_bytes(delivery["timestamp"]))
    if "expiration" in delivery:
        extra_headers[EXPIRES_AT] = Timestamp(int.from_bytes(delivery["expiration"]))
    if "resume_id" in delivery:
        extra_headers[RESUME_ID] = _text(delivery["resume_id"])
    if "resume_ttl" in delivery:
        ttl = int.from_bytes(delivery["resume_ttl"])
        # Tables have no unsigned type of 64 bits.
        extra_headers[RESUME_TTL] = ttl if ttl <= _INT64_MAX else str(ttl)
    return extra_headers


def _from_message(given: Mapping[str, bytes], basic_properties: BasicProperties) -> dict[str, Any]:
    extra_headers: dict[str, Any] = {}
    for name in ("content_type", "content_encoding"):
        if name in given:
            setattr(basic_properties, name, _text(given[name]))
    for name, header in LONG.items():
        value = given.get(name)
        if value is not None and len(value) <= NAME_BYTES:
            setattr(basic_properties, name, _text(value))
        elif value is not None:
            # str16 here, a short string in basic.
            extra_headers[header] = value
    if "message_id" in given:
        basic_properties.message_id = str(UUID(bytes=given["message_id"]))
    if "reply_to" in given:
        reply_to = _read(given["reply_to"], 0, len(given["reply_to"]), _REPLY_TO_FIELDS)
        basic_properties.reply_to = _text(reply_to.get("routing_key", b""))
        if reply_to.get("exchange"):
            extra_headers[REPLY_EXCHANGE] = _text(reply_to["exchange"])
    return extra_headers


def delivered_by(raw: bytes) -> tuple[str, str]:
    """Return exchange and routing key of a delivery's header segment; empty if missing."""
    try:
        for code, begin, end in _structs(raw):
            if code == _DELIVERY:
                fields = _read(raw, begin, end, _DELIVERY_FIELDS)
                names = (fields.get("exchange", b""), fields.get("routing_key", b""))
                return names[0].decode(errors="replace"), names[1].decode(errors="replace")
    except (ValueError, IndexError):
        # The names are for display only: a malformed header is reported where it is decoded.
        pass
    return "", ""


# --- to 0-10 ------------------------------------------------------------------------------------


def from_basic(message: Message) -> Message:
    """Convert a message of class basic to 0-10."""
    given = decode_properties(message.raw)
    headers = given.headers or {}
    unreadable = headers.get(UNREADABLE)
    # A message that came from 0-10 and was malformed there: it goes back as it came. A text that
    # is no UTF-8 has a type of its own, and is no such header.
    if type(unreadable) is bytes:
        properties = Properties(
            unreadable, message.delivery_mode, message.priority, family=FAMILY_010
        )
        return new_message(message.exchange, message.routing_key, properties, message.body)
    delivery: dict[str, bytes] = {}
    fields: dict[str, bytes] = {}
    extra_headers: dict[str, Any] = {}
    moved_headers: set[str] = set()
    others = headers.get(STRUCTS)
    # Anything else would make the header segment of another client malformed.
    if isinstance(others, bytes) and _are_structs(others):
        moved_headers.add(STRUCTS)
    else:
        others = None
    _to_delivery(given, headers, delivery, extra_headers, moved_headers)
    _to_message(given, headers, fields, extra_headers, moved_headers)
    table = b"".join(_entry(name, value) for name, value in extra_headers.items())
    begin, end = headers_span(message.raw)
    if begin < end:
        kept = [
            message.raw[start:after]
            for name, start, after in entries(message.raw, begin)
            if name.decode(errors="surrogateescape") not in moved_headers
        ]
        table = b"".join(kept) + table
    if table:
        fields["application_headers"] = to_map(table)
    raw = _struct(_DELIVERY, delivery, _DELIVERY_FIELDS) + _struct(
        _MESSAGE, fields, _MESSAGE_FIELDS
    )
    if isinstance(others, bytes):
        raw += others
    properties = Properties(
        raw, given.delivery_mode or 0, -1 if given.priority is None else given.priority,
        bool(table), family=FAMILY_010,
    )  # fmt: skip
    return new_message(message.exchange, message.routing_key, properties, message.body)


def _to_delivery(
    given: BasicProperties,
    headers: Mapping[str, Any],
    fields: dict[str, bytes],
    extra_headers: dict[str, Any],
    moved_headers: set[str],
) -> None:
    if given.priority is not None:
        fields["priority"] = given.priority.to_bytes(1)
    if given.delivery_mode is not None:
        fields["delivery_mode"] = given.delivery_mode.to_bytes(1)
    if given.timestamp is not None:
        fields["timestamp"] = _seconds(given.timestamp).to_bytes(8)
    if given.expiration is not None:
        ttl = ttl_in(given.expiration, _UINT64_MAX)
        if ttl is None:
            extra_headers[EXPIRATION] = given.expiration
        else:
            fields["ttl"] = ttl.to_bytes(8)
            # Such as "007": the way back restores the text of the publisher.
            if str(ttl) != given.expiration:
                extra_headers[EXPIRATION] = given.expiration
    moment = headers.get(EXPIRES_AT)
    if isinstance(moment, datetime | Timestamp):
        fields["expiration"] = _seconds(moment).to_bytes(8)
        moved_headers.add(EXPIRES_AT)
    resume_id = headers.get(RESUME_ID)
    if isinstance(resume_id, str):
        octets = resume_id.encode(errors="surrogateescape")
        if len(octets) <= _STR16_BYTES:
            fields["resume_id"] = octets
            moved_headers.add(RESUME_ID)
    resume_ttl = headers.get(RESUME_TTL)
    if isinstance(resume_ttl, str | int) and not isinstance(resume_ttl, bool | Timestamp):
        ttl = ttl_in(str(resume_ttl), _UINT64_MAX)
        if ttl is not None and str(ttl) == str(resume_ttl):
            fields["resume_ttl"] = ttl.to_bytes(8)
            moved_headers.add(RESUME_TTL)


def _to_message(
    given: BasicProperties,
    headers: Mapping[str, Any],
    fields: dict[str, bytes],
    extra_headers: dict[str, Any],
    moved_headers: set[str],
) -> None:
    for name in ("content_type", "content_encoding", *LONG):
        text = getattr(given, name)
        if text is not None:
            fields[name] = text.encode(errors="surrogateescape")
    for name, header in LONG.items():
        value = headers.get(header)
        if isinstance(value, bytes) and len(value) <= _STR16_BYTES and name not in fields:
            fields[name] = value
            moved_headers.add(header)
    if given.message_id is not None:
        uuid = _uuid(given.message_id)
        # 0-10 has room for 16 bytes only.
        if uuid is None:
            extra_headers[MESSAGE_ID] = given.message_id
        else:
            fields["message_id"] = uuid.bytes
    for name, header in (("type", TYPE), ("cluster_id", CLUSTER_ID)):
        if getattr(given, name) is not None:
            extra_headers[header] = getattr(given, name)
    if given.reply_to is not None:
        reply_to = {"routing_key": given.reply_to.encode(errors="surrogateescape")}
        exchange = headers.get(REPLY_EXCHANGE)
        if isinstance(exchange, str) and len(exchange.encode()) <= NAME_BYTES:
            reply_to["exchange"] = exchange.encode()
            moved_headers.add(REPLY_EXCHANGE)
        fields["reply_to"] = _fields(reply_to, _REPLY_TO_FIELDS)
    # A header of the same name must not come before the one that stands for the property.
    moved_headers.update(extra_headers)


def _are_structs(octets: bytes) -> bool:
    try:
        return all(_structs(octets))
    except (ValueError, IndexError):
        return False


def _uuid(text: str) -> UUID | None:
    """Return a UUID, if it is in the form that the reverse conversion generates."""
    try:
        uuid = UUID(text)
    except ValueError:
        return None
    return uuid if str(uuid) == text else None


def _seconds(timestamp: datetime | int) -> int:
    seconds = timestamp if isinstance(timestamp, int) else int(timestamp.timestamp())
    return max(0, seconds)


# --- bytes --------------------------------------------------------------------------------------


def _structs(raw: bytes) -> Iterator[tuple[bytes, int, int]]:
    """Yield code, begin of the packing flags and end of each struct."""
    offset = 0
    while offset < len(raw):
        end = offset + 4 + int.from_bytes(raw[offset : offset + 4])
        if offset + _HEAD > end or end > len(raw):
            raise ValueError("a struct is cut off")
        yield raw[offset + 4 : offset + 6], offset + 6, end
        offset = end


def _read(raw: bytes, offset: int, end: int, fields: _Fields) -> dict[str, bytes]:
    """Return the bytes of the present fields."""
    flags = int.from_bytes(raw[offset : offset + 2], "little")
    offset += 2
    values: dict[str, bytes] = {}
    for place, (name, width) in enumerate(fields):
        if not flags >> place & 1:
            continue
        # Both sides use the negative width of the table: minus the bytes of the length.
        if width < 0:
            width, offset = int.from_bytes(raw[offset : offset - width]), offset - width
        values[name] = raw[offset : offset + width]
        offset += width
        if offset > end:
            raise ValueError(f"{name} is cut off")
    return values


def _fields(values: Mapping[str, bytes], fields: _Fields) -> bytes:
    """Return packing flags and fields."""
    flags = 0
    out = b""
    for place, (name, width) in enumerate(fields):
        if name in values:
            flags |= 1 << place
            out += values[name] if width >= 0 else len(values[name]).to_bytes(-width) + values[name]
    return flags.to_bytes(2, "little") + out


def _struct(code: bytes, values: Mapping[str, bytes], fields: _Fields) -> bytes:
    content = code + _fields(values, fields)
    return len(content).to_bytes(4) + content


def _text(octets: bytes) -> str:
    return octets.decode(errors="surrogateescape")


def _entry(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        # With the octets that came: a short string of AMQP 0-9-1 need not be UTF-8.
        octets = value.encode(errors="surrogateescape")
        return bytes((len(name),)) + name.encode() + b"S" + len(octets).to_bytes(4) + octets
    return encode_table({name: value})[_EMPTY_TABLE:]


def _with_table(raw: bytes, table: bytes) -> bytes:
    """Insert headers into a property list without headers."""
    if not table:
        return raw
    flags = int.from_bytes(raw[:2]) | _HEADERS_FLAG
    offset, _ = headers_span(raw)
    return flags.to_bytes(2) + raw[2:offset] + len(table).to_bytes(4) + table + raw[offset:]
