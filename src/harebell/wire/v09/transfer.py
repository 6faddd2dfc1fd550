"""message.transfer of the transitional 0-10: a whole message in one method frame.

    120 10 | ticket(2) | destination(s) | bits(1) | ttl(8) priority(1) timestamp(8)
    delivery-mode(1) expiration(8) | exchange(s) routing-key(s) | message-id(s) correlation-id(s)
    reply-to(s) content-type(s) content-encoding(s) | content-length(8) | type(s) user-id(s)
    app-id(s) transaction-id(s) security-token(l) application-headers(t) | kind(1) value(l)

    s short string   l long string   t field table
    bits: 1 redelivered, 2 reject-unroutable, 4 immediate
    kind: 0 the value is the body, 1 it is the name of a reference to the body

Every field is always sent; zero or empty means absent. A message keeps (`Transfer.raw`,
`base.message.FAMILY_010T`) the fields from `ttl` on, without those that the broker has elsewhere:
exchange, routing-key and content-length.

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
    """One message.transfer as it is sent.

    Attributes:
        ticket: the access ticket.
        destination: the exchange it is for, or the consumer.
        redelivered, reject_unroutable, immediate: its bits.
        exchange: the exchange that it was published to, in a transfer from a broker.
        routing_key: the key that the exchange compares with its bindings.
        content_length: the bytes of the body, as the sender says; for information only.
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


def _after_text(data: bytes, offset: int, name: str) -> int:
    """Return the end of a short string."""
    if offset >= len(data):
        raise _over(name)
    end = offset + 1 + data[offset]
    if end > len(data):
        raise _over(name)
    return end


def _after_long(data: bytes, offset: int, name: str) -> int:
    """Return the end of a long string or a table."""
    start = offset + _LONG
    end = start + int.from_bytes(data[offset:start])
    if start > len(data) or end > len(data):
        raise _over(name)
    return end


def _text(data: bytes, offset: int, name: str) -> tuple[str, int]:
    end = _after_text(data, offset, name)
    try:
        return data[offset + 1 : end].decode(), end
    except UnicodeDecodeError:
        raise _bad(name, "Malformed UTF-8 in shortstr", 501) from None


def read_transfer(payload: bytes, note: Callable[[TypedTable], None] | None = None) -> Transfer:
    """Decode a transfer from a method frame's payload.

    Args:
        payload: with class and method id.
        note: called with the headers, if there are any.

    Raises:
        ProtocolError: 502 for fields that do not fill the frame exactly or a malformed table, 501
            for names that are no UTF-8.
    """
    offset = len(HEAD) + _TICKET
    if offset > len(payload):
        raise _over("ticket")
    transfer = Transfer(ticket=int.from_bytes(payload[len(HEAD) : offset]))
    transfer.destination, offset = _text(payload, offset, "destination")
    if offset + 1 + _FIXED.size > len(payload):
        raise _over("expiration")
    bits = payload[offset]
    transfer.redelivered = bool(bits & _REDELIVERED)
    transfer.reject_unroutable = bool(bits & _REJECT_UNROUTABLE)
    transfer.immediate = bool(bits & _IMMEDIATE)
    fixed = offset = offset + 1
    offset += _FIXED.size
    # Cut out of `raw`: it is put together of the three pieces around the fields left out.
    transfer.exchange, after_exchange = _text(payload, offset, "exchange")
    transfer.routing_key, middle = _text(payload, after_exchange, "routing-key")
    before = payload[fixed:offset]
    offset = middle
    for name in _TEXT_NAMES[:_TEXTS_BEFORE]:
        offset = _after_text(payload, offset, name.replace("_", "-"))
    texts_end = offset
    offset += _LENGTH
    if offset > len(payload):
        raise _over("content-length")
    transfer.content_length = int.from_bytes(payload[texts_end:offset])
    after = offset
    for name in _TEXT_NAMES[_TEXTS_BEFORE:]:
        offset = _after_text(payload, offset, name.replace("_", "-"))
    offset = _after_long(payload, offset, "security-token")
    headers, offset = offset, _after_long(payload, offset, "application-headers")
    transfer.raw = before + payload[middle:texts_end] + payload[after:offset]
    if offset - headers > _LONG:
        table = _read_headers(payload, headers)
        if note is not None:
            note(table)
    _read_body(transfer, payload, offset)
    return transfer


def _read_headers(payload: bytes, offset: int) -> TypedTable:
    """Check the table: consumers of other versions rely on it being well-formed."""
    try:
        return decode_typed(payload, offset)[0]
    except ProtocolError as error:
        raise _bad("application-headers", error.text) from None


def _read_body(transfer: Transfer, payload: bytes, offset: int) -> None:
    if offset >= len(payload):
        raise _over("body")
    transfer.kind = payload[offset]
    if transfer.kind not in (INLINE, REFERENCE):
        raise _bad("body", f"it is neither inline (0) nor a reference (1), but {transfer.kind}")
    end = _after_long(payload, offset + 1, "body")
    if end != len(payload):
        rest = len(payload) - end
        text = f"message.transfer: {rest} octets of garbage after the last field"
        raise ProtocolError(_SYNTAX, text, CLASS_ID, METHOD_ID)
    transfer.value = payload[offset + 1 + _LONG : end]


def write_transfer(transfer: Transfer) -> bytes:
    """Return the payload of a method frame.

    Raises:
        ValueError: a name of more than 255 octets.
    """
    raw = transfer.raw or EMPTY
    # The fields that `raw` lacks go behind its fixed part, and behind its first five texts.
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
    """Return begin and end of every text, and the offsets of the security token and the headers."""
    offset = _FIXED.size
    texts = []
    for _ in _TEXT_NAMES:
        end = offset + 1 + raw[offset]
        texts.append((offset + 1, end))
        offset = end
    return texts, offset, offset + _LONG + int.from_bytes(raw[offset : offset + _LONG])


def parse_transfer(raw: bytes) -> Properties:
    """Return encoded properties from a transfer, with the values that the broker itself needs."""
    # At their offsets in the fixed part: ttl(8) priority(1) timestamp(8) delivery-mode(1) ...
    headers = _tail(raw)[2]
    return Properties(
        raw,
        raw[_FIXED.size - _LENGTH - 1],
        raw[_LENGTH],
        len(raw) - headers > _LONG,
        family=FAMILY_010T,
    )


def decode_transfer(raw: bytes) -> TransferProperties:
    """Decode the properties of a message of this family."""
    texts, token, headers = _tail(raw)
    properties = TransferProperties(*_FIXED.unpack_from(raw))
    for name, (begin, end) in zip(_TEXT_NAMES, texts, strict=True):
        setattr(properties, name, raw[begin:end].decode(errors="surrogateescape"))
    properties.security_token = raw[token + _LONG : headers]
    properties.application_headers, _ = decode_typed(raw, headers)
    return properties


def headers_octets(raw: bytes) -> bytes:
    """Return the encoded table of application headers, with its size in front."""
    return raw[_tail(raw)[2] :]


def with_headers_octets(raw: bytes, table: bytes) -> bytes:
    """Return properties with another encoded table of application headers, which come last."""
    return raw[: _tail(raw)[2]] + table


def encode_transfer(
    properties: TransferProperties,
    table: bytes | None = None,
    dialect: FieldDialect = FieldDialect.TYPED,
) -> bytes:
    """Encode properties in the form that messages keep.

    Args:
        properties: the decoded properties, with headers that are not encoded yet.
        table: the application headers, if they are encoded already.
        dialect: the types to encode the application headers in otherwise.

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
    """True if encoded properties have no message-id."""
    # It is the first text: a length of zero.
    return not raw[_FIXED.size]


def stamped_transfer(raw: bytes, now_ms: int, message_id: str) -> bytes:
    """Return properties with the fields that a broker sets on arrival of the message.

    Timestamp and message-id are set if the publisher has not set them; the expiration is the time
    of arrival plus the ttl, rounded up to whole seconds.

    Args:
        raw: encoded properties.
        now_ms: the time of day, in milliseconds since 1970.
        message_id: an id that no other message has.
    """
    ttl, priority, timestamp, delivery_mode, _ = _FIXED.unpack_from(raw)
    # Rounded up: in whole seconds it must not be earlier than the ttl.
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
    """Return properties with another field expiration, in seconds since 1970."""
    begin = _FIXED.size - _LENGTH
    return raw[:begin] + seconds.to_bytes(_LENGTH) + raw[_FIXED.size :]
