"""Between class basic and the transfers of transitional 0-10.

    basic                                     message.transfer
    content-type content-encoding             the fields of the same names
    correlation-id reply-to message-id
    timestamp type user-id app-id
    delivery-mode priority
    headers                                   application-headers
    expiration                                ttl; x-amqp-expiration where the texts differ
    header x-amqp-transaction-id              transaction-id
    header x-amqp-security-token              security-token
    cluster-id                                header x-amqp-cluster-id

A transfer always has all fields, so zero and empty mean absent in basic. Its field expiration
follows from the ttl: it is computed at delivery.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from harebell.base.expiration import ttl_in
from harebell.base.limits import NAME_BYTES
from harebell.base.message import Message, Properties, new_message
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.edit import edited, headers_span
from harebell.wire.v09.fields import LongString, encode_table, read_timestamp
from harebell.wire.v09.transfer import (
    TransferProperties,
    decode_transfer,
    encode_transfer,
    headers_octets,
    parse_transfer,
)
from harebell.wire.v09.typed_fields import FieldDialect, TypedTable, lettered

TRANSACTION_ID = "x-amqp-transaction-id"
SECURITY_TOKEN = "x-amqp-security-token"  # noqa: S105, the name of a header
CLUSTER_ID = "x-amqp-cluster-id"
EXPIRATION = "x-amqp-expiration"

_TEXTS = (
    "content_type",
    "content_encoding",
    "correlation_id",
    "reply_to",
    "message_id",
    "type",
    "user_id",
    "app_id",
)
_NUMBERS = ("delivery_mode", "priority")
_UINT64_MAX = (1 << 64) - 1
_FLAGS = 2
_SIZE = 4
_HEADERS = 1 << 13


def to_basic(message: Message) -> Message:
    """Convert a transfer to class basic."""
    given = decode_transfer(message.raw)
    headers = given.application_headers
    basic_properties = BasicProperties()
    for name in (*_TEXTS, *_NUMBERS):
        setattr(basic_properties, name, getattr(given, name) or None)
    if given.timestamp:
        basic_properties.timestamp = read_timestamp(given.timestamp)
    if given.ttl:
        basic_properties.expiration = str(given.ttl)
    changes: dict[str, Any] = {}
    cluster_id = _text(headers.get(CLUSTER_ID))
    if cluster_id:
        basic_properties.cluster_id = cluster_id
        changes[CLUSTER_ID] = None
    expiration = _text(headers.get(EXPIRATION))
    # A header that does not mean the same as the ttl is one of an application.
    if expiration and ttl_in(expiration, _UINT64_MAX) == given.ttl:
        basic_properties.expiration = expiration
        changes[EXPIRATION] = None
    if given.transaction_id:
        changes[TRANSACTION_ID] = _header(given.transaction_id)
    if given.security_token:
        changes[SECURITY_TOKEN] = given.security_token
    if headers:
        # Set below, with the bytes of the publisher if basic can have them.
        basic_properties.headers = {}
    raw = encode_properties(basic_properties)
    if headers:
        begin, end = headers_span(raw)
        raw = raw[:begin] + _lettered_octets(message.raw, headers) + raw[end:]
    if changes:
        raw = edited(raw, changes)
    return new_message(message.exchange, message.routing_key, _parsed(raw), message.body)


def from_basic(message: Message) -> Message:
    """Convert a message of class basic to a transfer."""
    given = decode_properties(message.raw)
    headers = given.headers or {}
    transfer_properties = TransferProperties()
    for name in (*_TEXTS, *_NUMBERS):
        value = getattr(given, name)
        if value is not None:
            setattr(transfer_properties, name, value)
    if given.timestamp is not None:
        transfer_properties.timestamp = _seconds(given.timestamp)
    changes: dict[str, Any] = {}
    if given.expiration is not None:
        transfer_properties.ttl = ttl_in(given.expiration, _UINT64_MAX) or 0
        if not transfer_properties.ttl or str(transfer_properties.ttl) != given.expiration:
            changes[EXPIRATION] = _header(given.expiration)
    if given.cluster_id is not None:
        changes[CLUSTER_ID] = _header(given.cluster_id)
    transaction_id = _text(headers.get(TRANSACTION_ID))
    if transaction_id:
        transfer_properties.transaction_id = transaction_id
        changes[TRANSACTION_ID] = None
    token = headers.get(SECURITY_TOKEN)
    if isinstance(token, bytes) and token:
        transfer_properties.security_token = bytes(token)
        changes[SECURITY_TOKEN] = None
    raw = edited(message.raw, changes) if changes else message.raw
    begin, end = headers_span(raw)
    table = raw[begin:end] if begin < end else None
    properties = parse_transfer(encode_transfer(transfer_properties, table))
    return new_message(message.exchange, message.routing_key, properties, message.body)


def _text(value: Any) -> str:
    """Return a header that fits into a short string; "" for others."""
    data = value.encode(errors="surrogateescape") if isinstance(value, str) else value
    # Octets of type x are no text; those of a LongString are one that is no UTF-8.
    if not isinstance(data, bytes) or isinstance(value, bytes) != isinstance(value, LongString):
        return ""
    return data.decode(errors="surrogateescape") if len(data) <= NAME_BYTES else ""


def _header(text: str) -> str | LongString:
    """Return a text as a header value; bytes that are not UTF-8 have a type of their own."""
    data = text.encode(errors="surrogateescape")
    try:
        return data.decode()
    except UnicodeDecodeError:
        return LongString(data)


def _seconds(timestamp: datetime | int) -> int:
    return timestamp if isinstance(timestamp, int) else int(timestamp.timestamp())


def _lettered_octets(raw: bytes, headers: Mapping[str, Any]) -> bytes:
    """Convert application headers to the types of basic, if they are not of those already."""
    if isinstance(headers, TypedTable) and headers.dialect is not FieldDialect.TYPED:
        return headers_octets(raw)
    return encode_table({key: lettered(value) for key, value in headers.items()})


def _parsed(raw: bytes) -> Properties:
    """Decode basic properties, without a header table that is empty now."""
    begin, end = headers_span(raw)
    # Only a size is left: carried headers were the only ones, and the publisher had no table.
    if end - begin == _SIZE:
        flags = int.from_bytes(raw[:_FLAGS]) & ~_HEADERS
        raw = flags.to_bytes(_FLAGS) + raw[_FLAGS:begin] + raw[end:]
    return parse_properties(raw)
