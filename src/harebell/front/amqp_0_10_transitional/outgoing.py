"""Send a message to a peer of transitional 0-10: as one transfer, or by reference.

    fits a frame    transfer(inline body)
    does not fit    open(r)  transfer(r)  append(r) append(r) ...  close(r)

Each of them is a command with the next number; the peer acknowledges the transfer. Values of this
delivery (its offset in a stream, its delivery count) are added to the headers, which are written in
types that the peer has used.
"""

from __future__ import annotations

from typing import Any

from harebell.base.message import FAMILY_010T, Message
from harebell.front.convert import converted
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL
from harebell.wire.v09.methods_transitional import MessageAppend, MessageClose, MessageOpen
from harebell.wire.v09.transfer import (
    Transfer,
    decode_transfer,
    expiring_transfer,
    with_headers_octets,
    write_transfer,
)
from harebell.wire.v09.transitional_types import INLINE, REFERENCE
from harebell.wire.v09.typed_fields import FieldDialect, TypedTable, encode_typed

_MS = 1000
_APPEND_OVERHEAD = 4 + 4 + 4
"""An append beside its name and bytes: class and method id, and two lengths."""
_OFFSET = "x-stream-offset"
_DELIVERIES = "x-delivery-count"


def transfer_of(
    message: Message, destination: str, redelivered: bool, dialect: FieldDialect
) -> Transfer:
    """Make the transfer of a message, with its body inline.

    Args:
        message: of any family.
        destination: the consumer's.
        redelivered: whether it may have been delivered before.
        dialect: the types that the peer has used in field tables.
    """
    if message.family != FAMILY_010T:
        message = converted(message, FAMILY_010T)
    raw = message.raw
    due = message.due
    if due > 0:
        # Rounded up: in whole seconds the message must not expire earlier than here.
        raw = expiring_transfer(raw, -(-due // _MS))
    return Transfer(
        destination=destination,
        redelivered=redelivered,
        exchange=message.exchange,
        routing_key=message.routing_key,
        content_length=len(message.body),
        raw=_with_headers(message, raw, dialect),
        kind=INLINE,
        value=message.body,
    )


def _with_headers(message: Message, raw: bytes, dialect: FieldDialect) -> bytes:
    """Return the properties with headers that the peer can read, and values of this delivery."""
    own: dict[str, Any] = {}
    if message.offset >= 0:
        own[_OFFSET] = message.offset
    if message.deliveries:
        own[_DELIVERIES] = message.deliveries
    if not own and (not message.has_headers or dialect is FieldDialect.TYPED):
        return raw
    headers = decode_transfer(raw).application_headers
    if not own and isinstance(headers, TypedTable) and headers.dialect <= dialect:
        return raw
    return with_headers_octets(raw, encode_typed(headers | own, dialect))


def commands_of(transfer: Transfer, name: bytes, room: int) -> list[bytes]:
    """Return the payloads of the method frames that send a transfer to a peer.

    Args:
        transfer: with its body inline.
        name: an unused name of a reference, in case one is needed.
        room: the longest payload that a frame may have.

    Returns:
        One payload, or those of a reference; the transfer is the second of them.
    """
    whole = write_transfer(transfer)
    if len(whole) <= room:
        return [whole]
    body = transfer.value
    transfer.kind = REFERENCE
    transfer.value = name
    size = max(1, room - _APPEND_OVERHEAD - len(name))
    encode = AMQP_0_10_TRANSITIONAL.encode
    return [
        encode(MessageOpen(reference=name)),
        write_transfer(transfer),
        *(
            encode(MessageAppend(reference=name, octets=body[begin : begin + size]))
            for begin in range(0, len(body), size)
        ),
        encode(MessageClose(reference=name)),
    ]
