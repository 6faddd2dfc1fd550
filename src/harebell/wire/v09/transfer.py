"""message.transfer of the transitional 0-10: a whole message in one method frame.

    120 10 | ticket(2) | destination(s) | bits(1) | ttl(8) priority(1) timestamp(8)
    delivery-mode(1) expiration(8) | exchange(s) routing-key(s) | message-id(s) correlation-id(s)
    reply-to(s) content-type(s) content-encoding(s) | content-length(8) | type(s) user-id(s)
    app-id(s) transaction-id(s) security-token(l) application-headers(t) | kind(1) value(l)

    s short string   l long string   t field table
    bits: 1 redelivered, 2 reject-unroutable, 4 immediate
    kind: 0 the value is the body, 1 it is the name of a reference to the body

Every field is always there; zero or empty is absent. What a message keeps of it (`Transfer.raw`,
`base.message.FAMILY_010T`) are the fields from `ttl` on without those that the broker knows by
itself: exchange, routing-key and content-length.

    raw:  ttl(8) priority(1) timestamp(8) delivery-mode(1) expiration(8) | message-id(s)
          correlation-id(s) reply-to(s) content-type(s) content-encoding(s) | type(s) user-id(s)
          app-id(s) transaction-id(s) security-token(l) application-headers(t)
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from msgspec import Struct

from harebell.base.errors import ProtocolError
from harebell.base.limits import NAME_BYTES
from harebell.base.message import FAMILY_010T, Properties
from harebell.wire.v09.transitional_types import INLINE, REFERENCE
from harebell.wire.v09.typed_fields import FieldDialect, TypedTable, decode_typed, encode_typed

CLASS_ID = 120
METHOD_ID = 10
HEAD = CLASS_ID.to_bytes(2) + METHOD_ID.to_bytes(2)

_REDELIVERED, _REJECT_UNROUTABLE, _IMMEDIATE = 1, 2, 4
_FIXED = struct.Struct(">QBQBQ")
_TEXTS_BEFORE = 5
_TEXTS_AFTER = 4
_TICKET = 2
_LENGTH = 8
_LONG = 4
_SYNTAX = 502


class Transfer(Struct):
    """One message.transfer as it stands on the wire.

    Attributes:
        ticket: the access ticket.
        destination: the exchange it is for, or the consumer.
        redelivered, reject_unroutable, immediate: its bits.
        exchange: where it was published, as a broker tells it.
        routing_key: what the exchange compares with its bindings.
        content_length: octets of body, as its sender says.
        raw: its properties, as drawn above.
        kind: INLINE or REFERENCE.
        value: the body, or the name of the reference to it.
    """

    ticket: int = 0
    destination: str = ""
    redelivered: bool = False
    reject_unroutable: bool = False
    immediate: bool = False
    exchange: str = ""
    routing_key: str = ""
    content_length: int = 0
    raw: bytes = b""
    kind: int = INLINE
    value: bytes = b""


class TransferProperties(Struct):
    """The properties of a transfer, decoded; zero and empty are absent."""

    ttl: int = 0
    priority: int = 0
    timestamp: int = 0
    delivery_mode: int = 0
    expiration: int = 0
    message_id: str = ""
    correlation_id: str = ""
    reply_to: str = ""
    content_type: str = ""
    content_encoding: str = ""
    type: str = ""
    user_id: str = ""
    app_id: str = ""
    transaction_id: str = ""
    security_token: bytes = b""
    application_headers: dict[str, Any] = {}


_FIXED_NAMES = TransferProperties.__struct_fields__[:_TEXTS_BEFORE]
_TEXT_NAMES = TransferProperties.__struct_fields__[_TEXTS_BEFORE : 2 * _TEXTS_BEFORE + _TEXTS_AFTER]
EMPTY = bytes(_FIXED.size + _TEXTS_BEFORE + _TEXTS_AFTER + 2 * _LONG)
"""The encoded properties of a message that has none."""


def _bad(name: str, why: str, code: int = _SYNTAX) -> ProtocolError:
    text = f"message.transfer: field '{name}': {why}" if code == _SYNTAX else why
    return ProtocolError(code, text, CLASS_ID, METHOD_ID)


def _over(name: str) -> ProtocolError:
    return _bad(name, "it runs over the end of the frame")


def _after_text(data: bytes, at: int, name: str) -> int:
    """Where a short string ends."""
    if at >= len(data):
        raise _over(name)
    end = at + 1 + data[at]
    if end > len(data):
        raise _over(name)
    return end


def _after_long(data: bytes, at: int, name: str) -> int:
    """Where a long string or a table ends."""
    start = at + _LONG
    end = start + int.from_bytes(data[at:start])
    if start > len(data) or end > len(data):
        raise _over(name)
    return end


def _text(data: bytes, at: int, name: str) -> tuple[str, int]:
    end = _after_text(data, at, name)
    try:
        return data[at + 1 : end].decode(), end
    except UnicodeDecodeError:
        raise _bad(name, "Malformed UTF-8 in shortstr", 501) from None


def read_transfer(payload: bytes, note: Callable[[TypedTable], None] | None = None) -> Transfer:
    """The transfer in a method frame's payload.

    Args:
        payload: with class and method id.
        note: is shown its headers, where there are some.

    Raises:
        ProtocolError: 502 for fields that do not fill the frame exactly or a malformed table, 501
            for names that are no UTF-8.
    """
    at = len(HEAD) + _TICKET
    if at > len(payload):
        raise _over("ticket")
    found = Transfer(ticket=int.from_bytes(payload[len(HEAD) : at]))
    found.destination, at = _text(payload, at, "destination")
    if at + 1 + _FIXED.size > len(payload):
        raise _over("expiration")
    bits = payload[at]
    found.redelivered = bool(bits & _REDELIVERED)
    found.reject_unroutable = bool(bits & _REJECT_UNROUTABLE)
    found.immediate = bool(bits & _IMMEDIATE)
    fixed = at = at + 1
    at += _FIXED.size
    found.exchange, after_exchange = _text(payload, at, "exchange")
    found.routing_key, middle = _text(payload, after_exchange, "routing-key")
    before = payload[fixed:at]
    at = middle
    for name in _TEXT_NAMES[:_TEXTS_BEFORE]:
        at = _after_text(payload, at, name.replace("_", "-"))
    texts_end = at
    at += _LENGTH
    if at > len(payload):
        raise _over("content-length")
    found.content_length = int.from_bytes(payload[texts_end:at])
    after = at
    for name in _TEXT_NAMES[_TEXTS_BEFORE:]:
        at = _after_text(payload, at, name.replace("_", "-"))
    at = _after_long(payload, at, "security-token")
    headers, at = at, _after_long(payload, at, "application-headers")
    found.raw = before + payload[middle:texts_end] + payload[after:at]
    if at - headers > _LONG:
        table = _read_headers(payload, headers)
        if note is not None:
            note(table)
    _read_body(found, payload, at)
    return found


def _read_headers(payload: bytes, at: int) -> TypedTable:
    """Check the table: consumers of other versions rely on it being well-formed."""
    try:
        return decode_typed(payload, at)[0]
    except ProtocolError as error:
        raise _bad("application-headers", error.text) from None


def _read_body(found: Transfer, payload: bytes, at: int) -> None:
    if at >= len(payload):
        raise _over("body")
    found.kind = payload[at]
    if found.kind not in (INLINE, REFERENCE):
        raise _bad("body", f"it is neither inline (0) nor a reference (1), but {found.kind}")
    end = _after_long(payload, at + 1, "body")
    if end != len(payload):
        left = len(payload) - end
        text = f"message.transfer: {left} octets of garbage after the last field"
        raise ProtocolError(_SYNTAX, text, CLASS_ID, METHOD_ID)
    found.value = payload[at + 1 + _LONG : end]


def write_transfer(transfer: Transfer) -> bytes:
    """The payload of a method frame.

    Raises:
        ValueError: a name of more than 255 octets.
    """
    raw = transfer.raw or EMPTY
    middle = after = _FIXED.size
    for _ in range(_TEXTS_BEFORE):
        after += 1 + raw[after]
    bits = (
        transfer.redelivered * _REDELIVERED
        | transfer.reject_unroutable * _REJECT_UNROUTABLE
        | transfer.immediate * _IMMEDIATE
    )
    return b"".join(
        (
            HEAD,
            transfer.ticket.to_bytes(_TICKET),
            _shortstr("destination", transfer.destination),
            bytes((bits,)),
            raw[:middle],
            _shortstr("exchange", transfer.exchange),
            _shortstr("routing_key", transfer.routing_key),
            raw[middle:after],
            transfer.content_length.to_bytes(_LENGTH),
            raw[after:],
            bytes((transfer.kind,)),
            len(transfer.value).to_bytes(_LONG),
            transfer.value,
        )
    )


def _shortstr(name: str, value: str) -> bytes:
    octets = value.encode(errors="surrogateescape")
    if len(octets) > NAME_BYTES:
        raise ValueError(f"{name}: it has {len(octets)} octets, at most {NAME_BYTES} are possible")
    return bytes((len(octets),)) + octets


def _tail(raw: bytes) -> tuple[list[tuple[int, int]], int, int]:
    """Begin and end of every text; where the security token and the headers begin."""
    at = _FIXED.size
    texts = []
    for _ in _TEXT_NAMES:
        end = at + 1 + raw[at]
        texts.append((at + 1, end))
        at = end
    return texts, at, at + _LONG + int.from_bytes(raw[at : at + _LONG])


def parse_transfer(raw: bytes) -> Properties:
    """What the broker itself needs of encoded properties that were read from a transfer."""
    headers = _tail(raw)[2]
    return Properties(
        raw,
        raw[_FIXED.size - _LENGTH - 1],
        raw[_LENGTH],
        len(raw) - headers > _LONG,
        family=FAMILY_010T,
    )


def decode_transfer(raw: bytes) -> TransferProperties:
    """The properties of a message of this family."""
    texts, token, headers = _tail(raw)
    found = TransferProperties(*_FIXED.unpack_from(raw))
    for name, (begin, end) in zip(_TEXT_NAMES, texts, strict=True):
        setattr(found, name, raw[begin:end].decode(errors="surrogateescape"))
    found.security_token = raw[token + _LONG : headers]
    found.application_headers, _ = decode_typed(raw, headers)
    return found


def headers_octets(raw: bytes) -> bytes:
    """The table of application headers as it is encoded, with its size in front."""
    return raw[_tail(raw)[2] :]


def with_headers_octets(raw: bytes, table: bytes) -> bytes:
    """The same properties with another encoded table of application headers."""
    return raw[: _tail(raw)[2]] + table


def encode_transfer(
    properties: TransferProperties,
    table: bytes | None = None,
    dialect: FieldDialect = FieldDialect.TYPED,
) -> bytes:
    """Properties as a message keeps them.

    Args:
        properties: what is to be encoded.
        table: the application headers, if they are encoded already.
        dialect: what they are encoded in if they are not.

    Raises:
        ValueError: a value does not fit; the text names the property.
        TypeError: a value is of a wrong type; the text names the property.
    """
    for name, width in zip(_FIXED_NAMES, (8, 1, 8, 1, 8), strict=True):
        value = getattr(properties, name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name}: must be an int, not {type(value).__name__}")
        if not 0 <= value < 1 << 8 * width:
            raise ValueError(f"{name}: {value} is not between 0 and {(1 << 8 * width) - 1}")
    fixed = _FIXED.pack(*(getattr(properties, name) for name in _FIXED_NAMES))
    parts = [fixed]
    for name in _TEXT_NAMES:
        value = getattr(properties, name)
        if not isinstance(value, str):
            raise TypeError(f"{name}: must be a str, not {type(value).__name__}")
        parts.append(_shortstr(name, value))
    token = properties.security_token
    if not isinstance(token, bytes):
        raise TypeError(f"security_token: must be bytes, not {type(token).__name__}")
    parts += (len(token).to_bytes(_LONG), token)
    try:
        headers = properties.application_headers
        parts.append(encode_typed(headers, dialect) if table is None else table)
    except ValueError as error:
        raise ValueError(f"application_headers: {error}") from None
    except TypeError as error:
        raise TypeError(f"application_headers: {error}") from None
    return b"".join(parts)


def lacks_id(raw: bytes) -> bool:
    """Whether encoded properties have no message-id."""
    return not raw[_FIXED.size]


def stamped_transfer(raw: bytes, now_ms: int, message_id: str) -> bytes:
    """Properties as a broker keeps them on arrival of the message.

    Timestamp and message-id are set where the publisher left them out, and the expiration is the
    time of arrival and the ttl, in whole seconds and never too early.

    Args:
        raw: encoded properties.
        now_ms: the time of day, in milliseconds since 1970.
        message_id: an id that no other message has.
    """
    ttl, priority, timestamp, delivery_mode, _ = _FIXED.unpack_from(raw)
    expiration = -(-(now_ms + ttl) // 1000) if ttl else 0
    rest = raw[_FIXED.size :]
    if not rest[0]:
        rest = _shortstr("message_id", message_id) + rest[1:]
    fixed = _FIXED.pack(
        ttl,
        priority,
        timestamp or now_ms // 1000,
        delivery_mode,
        min(expiration, (1 << 8 * _LENGTH) - 1),
    )
    return fixed + rest


def expiring_transfer(raw: bytes, seconds: int) -> bytes:
    """The same properties with the field expiration, in seconds since 1970."""
    begin = _FIXED.size - _LENGTH
    return raw[:begin] + seconds.to_bytes(_LENGTH) + raw[_FIXED.size :]
