"""Header tables of contents: the types of 0-9-1 within the broker, and the peer's on the wire.

Messages of class basic are stored in the form of 0-9-1, so its peers get them unchanged. A peer of
transitional 0-10 may use the types of its own specification, and may not know all of 0-9-1's.

    from the peer   typed values become letters         a header with letters is not changed
    to the peer     the types of its dialect, see `harebell.wire.v09.typed_fields`
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.base.errors import ProtocolError
from harebell.base.message import FAMILY_09, Message, Properties, new_message
from harebell.front.convert import converted
from harebell.wire.v09.typed_fields import FieldDialect, TypedTable, decode_typed, encode_typed

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.layer import TransitionalLayer

_FIXED = 12
_FLAGS = 2
_CONTENT_TYPE, _CONTENT_ENCODING, _HEADERS = 0x8000, 0x4000, 0x2000
_SIZE = 4
_TUNNEL = 110
_OFFSET, _DELIVERIES = "x-stream-offset", "x-delivery-count"


def _place(raw: bytes, first: int = _HEADERS) -> int:
    """Return the offset of the header table in a property list; 0 if there is none."""
    flags = int.from_bytes(raw[:_FLAGS])
    if not flags & first:
        return 0
    offset = _FLAGS
    if first == _HEADERS:
        # Two short strings may come before it: a length octet, and so many bytes.
        for flag in (_CONTENT_TYPE, _CONTENT_ENCODING):
            if flags & flag and offset < len(raw):
                offset += 1 + raw[offset]
    return offset if offset + _SIZE <= len(raw) else 0


def _first(class_id: int) -> int:
    """Return the flag of the header table in the property list of a class."""
    return _CONTENT_TYPE if class_id == _TUNNEL else _HEADERS


def lettered_header(layer: TransitionalLayer, payload: bytes) -> bytes:
    """Convert the header table of a content header from the peer to 0-9-1.

    Malformed headers are not changed; a later reader rejects them.
    """
    raw = payload[_FIXED:]
    begin = _place(raw, _first(int.from_bytes(payload[:2])))
    if not begin:
        return payload
    try:
        table, end = decode_typed(raw, begin)
    except ProtocolError:
        return payload
    layer.note_dialect(table)
    if table.dialect is not FieldDialect.TYPED:
        return payload
    return payload[:_FIXED] + raw[:begin] + encode_typed(table, FieldDialect.LETTERS) + raw[end:]


def shown(layer: TransitionalLayer, message: Message) -> Message:
    """Convert a message to class basic, with headers that the peer can read."""
    if message.family != FAMILY_09:
        message = converted(message, FAMILY_09)
    added: dict[str, Any] = {}
    if message.offset >= 0:
        added[_OFFSET] = message.offset
    if message.deliveries > 0:
        added[_DELIVERIES] = message.deliveries
    if layer.dialect is FieldDialect.LETTERS or not (message.has_headers or added):
        return message
    raw = message.raw
    begin = _place(raw)
    table: dict[str, Any] = TypedTable()
    if begin:
        table, end = decode_typed(raw, begin)
    else:
        begin = end = _after_encoding(raw)
    dialect = layer.dialect
    if (
        not added
        and isinstance(table, TypedTable)
        and table.dialect is FieldDialect.PLAIN is dialect
    ):
        return message
    data = encode_typed(table | added, dialect)
    flags = int.from_bytes(raw[:_FLAGS]) | _HEADERS
    changed = flags.to_bytes(_FLAGS) + raw[_FLAGS:begin] + data + raw[end:]
    properties = Properties(changed, message.delivery_mode, message.priority, True)
    return new_message(message.exchange, message.routing_key, properties, message.body)


def readable(layer: TransitionalLayer, raw: bytes, class_id: int) -> bytes:
    """Convert the headers of a property list of a class other than basic for the peer."""
    begin = _place(raw, _first(class_id))
    if not begin or layer.dialect is FieldDialect.LETTERS:
        return raw
    table, end = decode_typed(raw, begin)
    return raw[:begin] + encode_typed(table, layer.dialect) + raw[end:]


def _after_encoding(raw: bytes) -> int:
    """Return the offset where a header table would be inserted."""
    # As if the flag were set; the added bytes stand for the table, which `_place` asks for.
    return _place(
        (int.from_bytes(raw[:_FLAGS]) | _HEADERS).to_bytes(_FLAGS) + raw[_FLAGS:] + bytes(_SIZE)
    )
