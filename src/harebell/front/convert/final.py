"""Between class basic and the header segment of final 0-10.

    basic                                     delivery-properties
    delivery-mode priority timestamp          the fields of the same names
    expiration                                ttl; x-amqp-expiration where the texts differ
    header x-amqp-resume-id -resume-ttl       resume-id resume-ttl

                                              message-properties
    content-type content-encoding             the fields of the same names
    correlation-id user-id app-id             the same, in octets; what basic has no room for goes
                                              into headers x-amqp-correlation-id ...
    message-id                                message-id when it is a UUID, else a header
                                              x-amqp-message-id among the application headers
    reply-to, header x-amqp-reply-exchange    reply-to.routing-key and reply-to.exchange
    headers                                   application-headers
    type cluster-id                           headers x-amqp-type x-amqp-cluster-id

Exchange and routing key belong to the message and are in no list. What only says how to route
(discard-unroutable, immediate) has done so; expiration follows from the ttl, content-length from
the body. A header that cannot be read goes into the header x-amqp-unreadable, as it came.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from harebell.base.errors import ProtocolError
from harebell.base.limits import NAME_BYTES
from harebell.base.message import FAMILY_010, Message, Properties, new_message
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.structs import Composite, DeliveryProperties, MessageProperties, ReplyTo
from harebell.wire.v010.types import Typed, write_typed
from harebell.wire.v09.content import (
    BasicProperties,
    decode_properties,
    encode_properties,
    parse_properties,
)
from harebell.wire.v09.typed_fields import lettered

PREFIX = "x-amqp-"
MESSAGE_ID = PREFIX + "message-id"
REPLY_EXCHANGE = PREFIX + "reply-exchange"
TYPE = PREFIX + "type"
CLUSTER_ID = PREFIX + "cluster-id"
EXPIRATION = PREFIX + "expiration"
RESUME_ID = PREFIX + "resume-id"
RESUME_TTL = PREFIX + "resume-ttl"
UNREADABLE = PREFIX + "unreadable"

_OCTETS = ("correlation_id", "user_id", "app_id")
_UINT64_MAX = (1 << 64) - 1
_STR16_MOST = 65_535
_Struct = TypeVar("_Struct", bound=Composite)


def decode_final(raw: bytes) -> tuple[DeliveryProperties, MessageProperties]:
    """Both structs of a header segment; what is not there is empty.

    Raises:
        ProtocolError: it cannot be read.
    """
    structs = AMQP_0_10.decode_header(raw)
    return _first(structs, DeliveryProperties), _first(structs, MessageProperties)


def _first(structs: list[Composite | Typed], kind: type[_Struct]) -> _Struct:
    return next((each for each in structs if isinstance(each, kind)), kind())


def encode_final(delivery: DeliveryProperties, message: MessageProperties) -> Properties:
    """A header segment, and what the broker needs of it.

    Raises:
        ValueError, TypeError: a value does not fit; the text names it.
    """
    raw = AMQP_0_10.encode_struct(delivery) + AMQP_0_10.encode_struct(message)
    return Properties(
        raw,
        delivery.delivery_mode or 0,
        -1 if delivery.priority is None else delivery.priority,
        bool(message.application_headers),
        family=FAMILY_010,
    )


# --- to basic -----------------------------------------------------------------------------------


def to_basic(message: Message) -> Message:
    """A message of 0-10 as class basic has it."""
    try:
        delivery, given = decode_final(message.raw)
    except ProtocolError:
        found = BasicProperties(headers={UNREADABLE: message.raw})
        found.delivery_mode = message.delivery_mode or None
        found.priority = message.priority if message.priority >= 0 else None
    else:
        found = _basic(delivery, given)
    properties = parse_properties(encode_properties(found))
    return new_message(message.exchange, message.routing_key, properties, message.body)


def _basic(delivery: DeliveryProperties, given: MessageProperties) -> BasicProperties:
    headers = {name: _plain(value) for name, value in given.application_headers.items()}
    found = BasicProperties()
    found.delivery_mode = delivery.delivery_mode
    found.priority = delivery.priority
    found.timestamp = delivery.timestamp
    found.content_type = given.content_type
    found.content_encoding = given.content_encoding
    for name in _OCTETS:
        _take_octets(found, headers, name, getattr(given, name))
    found.type = _taken(headers, TYPE)
    found.cluster_id = _taken(headers, CLUSTER_ID)
    found.message_id = _taken(headers, MESSAGE_ID)
    if given.message_id is not None:
        found.message_id = str(given.message_id)
    expiration = _taken(headers, EXPIRATION)
    if delivery.ttl is not None:
        found.expiration = str(delivery.ttl)
    if expiration is not None and (delivery.ttl is None or _ttl(expiration) == delivery.ttl):
        found.expiration = expiration
    _take_reply(found, headers, given.reply_to)
    if delivery.resume_id is not None:
        headers[RESUME_ID] = delivery.resume_id
    if delivery.resume_ttl is not None:
        headers[RESUME_TTL] = lettered(delivery.resume_ttl)
    found.headers = headers or None
    return found


def _take_octets(
    found: BasicProperties, headers: dict[str, Any], name: str, value: bytes | None
) -> None:
    """A property that basic has as a short text."""
    if value is None:
        return
    if len(value) <= NAME_BYTES:
        setattr(found, name, value.decode(errors="surrogateescape"))
    else:
        headers[PREFIX + name.replace("_", "-")] = value


def _take_reply(found: BasicProperties, headers: dict[str, Any], reply_to: ReplyTo | None) -> None:
    if reply_to is None:
        return
    found.reply_to = reply_to.routing_key or ""
    if reply_to.exchange:
        headers[REPLY_EXCHANGE] = reply_to.exchange


def _taken(headers: dict[str, Any], name: str) -> str | None:
    """A property of basic that travelled as a header."""
    value = headers.get(name)
    if not isinstance(value, str) or len(value.encode(errors="surrogateescape")) > NAME_BYTES:
        return None
    del headers[name]
    return value


def _plain(value: Any) -> Any:
    """A value as a field table can hold it."""
    if isinstance(value, Typed):
        return value.octets
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return lettered(value)


# --- from basic ---------------------------------------------------------------------------------


def from_basic(message: Message) -> Message:
    """A message of class basic as 0-10 has it."""
    given = decode_properties(message.raw)
    headers = {name: _typed(value) for name, value in (given.headers or {}).items()}
    unreadable = headers.get(UNREADABLE)
    if isinstance(unreadable, bytes):
        properties = Properties(
            unreadable, message.delivery_mode, message.priority, family=FAMILY_010
        )
    else:
        properties = encode_final(_delivery(given, headers), _message(given, headers))
    return new_message(message.exchange, message.routing_key, properties, message.body)


def _delivery(given: BasicProperties, headers: dict[str, Any]) -> DeliveryProperties:
    found = DeliveryProperties()
    found.delivery_mode = given.delivery_mode
    found.priority = given.priority
    found.timestamp = given.timestamp
    if given.expiration is not None:
        found.ttl = _ttl(given.expiration)
        if found.ttl is None or str(found.ttl) != given.expiration:
            headers[EXPIRATION] = given.expiration
    resume_id = headers.get(RESUME_ID)
    if isinstance(resume_id, str) and len(resume_id.encode()) <= _STR16_MOST:
        found.resume_id = headers.pop(RESUME_ID)
    found.resume_ttl = _number(headers, RESUME_TTL)
    return found


def _message(given: BasicProperties, headers: dict[str, Any]) -> MessageProperties:
    found = MessageProperties()
    found.content_type = given.content_type
    found.content_encoding = given.content_encoding
    for name in _OCTETS:
        value = getattr(given, name)
        header = PREFIX + name.replace("_", "-")
        if value is not None:
            setattr(found, name, value.encode(errors="surrogateescape"))
        elif isinstance(headers.get(header), bytes) and len(headers[header]) <= _STR16_MOST:
            setattr(found, name, headers.pop(header))
    if given.message_id is not None:
        found.message_id = _uuid(given.message_id)
        if found.message_id is None:
            headers[MESSAGE_ID] = given.message_id
    if given.reply_to is not None:
        exchange = headers.get(REPLY_EXCHANGE)
        if isinstance(exchange, str) and len(exchange.encode()) <= NAME_BYTES:
            del headers[REPLY_EXCHANGE]
        else:
            exchange = None
        found.reply_to = ReplyTo(exchange=exchange, routing_key=given.reply_to)
    texts = {TYPE: given.type, CLUSTER_ID: given.cluster_id}
    headers |= {header: text for header, text in texts.items() if text is not None}
    found.application_headers = headers
    return found


def _ttl(expiration: str) -> int | None:
    """The milliseconds of the property expiration; None for what is no such number."""
    try:
        ttl = int(expiration)
    except ValueError:
        return None
    return ttl if 0 <= ttl <= _UINT64_MAX else None


def _number(headers: dict[str, Any], name: str) -> int | None:
    """A number that travelled as a header, as text when it was large."""
    value = headers.get(name)
    if isinstance(value, str):
        value = _ttl(value)
    if isinstance(value, bool | datetime) or not isinstance(value, int) or value < 0:
        return None
    del headers[name]
    return value


def _uuid(text: str) -> UUID | None:
    """The UUID that a text is, to the letter."""
    try:
        found = UUID(text)
    except ValueError:
        return None
    return found if str(found) == text else None


def _typed(value: Any) -> Any:
    """A value as a map of 0-10 can hold it: a decimal that has no type there becomes text."""
    if isinstance(value, Mapping):
        return {key: _typed(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_typed(each) for each in value]
    if isinstance(value, Decimal):
        try:
            write_typed(value)
        except ValueError:
            return str(value)
    return value
