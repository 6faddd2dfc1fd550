"""Transfers with fields that the broker processes, beyond routing.

    ttl                      milliseconds after the arrival in which the message expires
    user-id                  must be the publisher's own
    fragment-properties      parts of a message are not reassembled
    headers CC and BCC       lists of further routing keys; the queues do not see BCC
    immediate                a queue accepts the message only for a ready subscription

Other transfers do not use this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import WRITE
from harebell.auth.users import IMPERSONATOR
from harebell.base.bcc import BCC, CC, BccMessage, further_keys
from harebell.base.message import Message, Properties, new_message
from harebell.base.values import Typed
from harebell.front.amqp_0_10.errors import (
    INVALID_ARGUMENT,
    NOT_IMPLEMENTED,
    UNAUTHORIZED_ACCESS,
    ExecutionError,
)
from harebell.front.common.interceptors import NODE, TIMESTAMP
from harebell.front.common.permission import check_topic
from harebell.front.convert.final import encode_final
from harebell.model.equivalence import type_name
from harebell.model.firehose import Actor
from harebell.model.transaction import due_at_commit
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Composite
from harebell.wire.v010.structs import DeliveryProperties, FragmentProperties, MessageProperties

if TYPE_CHECKING:
    from harebell.front.amqp_0_10.session import Session
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue

UNROUTABLE = 1
"""The reject-code for a message that no queue gets."""
NOT_TAKEN = 2
"""The one for an immediate message that would have to wait."""
_MS = 1000
_LONGEST_MS = 315_360_000_000_000
"""Ten thousand years: longer expirations mean none."""
_Structs = list[Composite | Typed]


def _one(structs: _Structs, kind: Any) -> Any:
    return next((each for each in structs if isinstance(each, kind)), None)


def prepared(
    session: Session, exchange: Exchange, routing_key: str, properties: Properties, body: bytes
) -> tuple[Message, tuple[Queue, ...]]:
    """Check a message with such fields, and route it.

    Returns:
        The message as its queues get it, and the queues.

    Raises:
        ExecutionError: a field is invalid or not allowed.
    """
    structs = AMQP_0_10.decode_header(properties.raw)
    delivery = _one(structs, DeliveryProperties) or DeliveryProperties()
    fields = _one(structs, MessageProperties) or MessageProperties()
    fragment = _one(structs, FragmentProperties)
    if fragment is not None and not (fragment.first and fragment.last):
        raise ExecutionError(NOT_IMPLEMENTED, "fragments of messages are not put together")
    _check_user_id(session, fields)
    headers = fields.application_headers
    keys = [*_further_keys(headers, CC), *_further_keys(headers, BCC)]
    if session.topic is not None:
        for key in (routing_key, *keys):
            check_topic(session, WRITE, exchange.name, key)
    message = new_message(exchange.name, routing_key, properties, body)
    queues = session.router.route_keys(exchange, message, keys)
    if BCC in headers:
        # Queues get the message without the header; a return shows it as it was published.
        fields.application_headers = {key: headers[key] for key in headers if key != BCC}
        without_bcc = encode_final(delivery, fields)
        message = BccMessage(message, without_bcc, properties)
    if delivery.ttl is not None and delivery.ttl <= _LONGEST_MS:
        if session.transaction is not None:
            # The message enters its queues at the commit: its time begins then.
            message.due = due_at_commit(delivery.ttl)
        else:
            message.due = session.connection.broker.clock.steady + delivery.ttl
    return message, queues


def _check_user_id(session: Session, fields: MessageProperties) -> None:
    """Refuse a user-id of another user (rule "authentication")."""
    user = session.user
    if not fields.user_id or fields.user_id == user.name.encode() or IMPERSONATOR in user.tags:
        return
    claimed = fields.user_id.decode(errors="replace")
    text = f"user-id is '{claimed}' but authenticated user was '{user.name}'"
    raise ExecutionError(UNAUTHORIZED_ACCESS, text)


def _further_keys(headers: Mapping[str, Any], name: str) -> list[str]:
    """Return the routing keys in a header; values that are not strings are ignored."""
    if name not in headers:
        return []
    value = headers[name]
    if not isinstance(value, list | tuple):
        text = f"header {name} is a list of routing keys, not a {type_name(value)}"
        raise ExecutionError(INVALID_ARGUMENT, text)
    return [key for key in value if isinstance(key, str)]


def takes_at_once(queues: tuple[Queue, ...]) -> bool:
    """True if each of the queues has a ready subscription."""
    return all(
        queue.ready_count() == 0 and any(consumer.ready() for consumer in queue.consumers)
        for queue in queues
    )


def intercepted(session: Session, properties: Properties) -> Properties:
    """Add the configured headers and properties to a published message."""
    connection = session.connection
    settings = connection.settings
    structs = AMQP_0_10.decode_header(properties.raw)
    delivery = _one(structs, DeliveryProperties) or DeliveryProperties()
    fields = _one(structs, MessageProperties) or MessageProperties()
    headers = dict(fields.application_headers)
    ms = connection.broker.clock.ms
    if settings.stamp_time is not None:
        if settings.stamp_time or TIMESTAMP not in headers:
            headers[TIMESTAMP] = ms
        if settings.stamp_time or delivery.timestamp is None:
            delivery.timestamp = ms // _MS
    if settings.stamp_node is not None and (settings.stamp_node or NODE not in headers):
        headers[NODE] = connection.broker.events.node
    fields.application_headers = headers
    encoded = encode_final(delivery, fields)
    return Properties(
        encoded.raw,
        encoded.delivery_mode,
        encoded.priority,
        encoded.has_headers,
        properties.suspect,
        encoded.family,
    )


def trace_publish(session: Session, message: Message, queues: tuple[Queue, ...]) -> None:
    """Send a copy of a published message to the firehose."""
    firehose = session.router.tracer
    if firehose is None:
        return
    keys = [message.routing_key]
    if message.has_headers:
        fields = _one(AMQP_0_10.decode_header(message.raw), MessageProperties)
        keys += further_keys(fields.application_headers if fields is not None else {})
    connection = session.connection
    actor = Actor(connection.peer.connection_name, session.number, session.user.name)
    firehose.published(message, keys, queues, actor)
