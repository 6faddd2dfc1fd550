"""Transfers from the client: message.transfer, inline or by reference (class message).

A transfer whose body is inline is published at once. One that names a reference is published when
the reference is closed, and complete only then. A message that cannot be delivered as the client
requires is refused by message.reject; its text has the command number of the transfer, because that
method has no field for it.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from harebell.auth.permissions import WRITE
from harebell.base.bcc import BCC, CC, further_keys
from harebell.base.errors import ProtocolError
from harebell.base.message import Message, Properties, new_message
from harebell.front.amqp_0_10_transitional.access import check_ticket
from harebell.front.amqp_0_10_transitional.layer import layer_of
from harebell.front.amqp_0_10_transitional.references import References, too_large
from harebell.front.common.access_tickets import WRITE as WRITING
from harebell.front.common.channel_details import details_of
from harebell.front.common.checkpoints import Checkpoints
from harebell.front.common.errors import soft
from harebell.front.common.firehose_tap import published
from harebell.front.common.interceptors import intercepted
from harebell.front.common.permission import check_topic
from harebell.front.common.property_checks import check_user_id
from harebell.front.convert.transitional import to_basic
from harebell.front.operations.publish import writable_exchange
from harebell.front.operations.returns import RETURNED, count_drop, count_return, takers
from harebell.front.operations.special_properties import prepared
from harebell.model.exchange.kind import Exchange
from harebell.model.queue.contract import PENDING, REJECTED, Queue, unrouted
from harebell.model.queue.features.alternate_exchange import ALTERNATE
from harebell.model.queue.reply import REPLY_TO
from harebell.model.resource import rendered
from harebell.model.transaction import due_at_commit
from harebell.wire.limits import REPLY_TEXT_BYTES
from harebell.wire.v09 import methods_transitional as m
from harebell.wire.v09.content import parse_properties
from harebell.wire.v09.transfer import (
    HEAD,
    Transfer,
    TransferProperties,
    decode_transfer,
    lacks_id,
    parse_transfer,
    read_transfer,
    stamped_transfer,
)
from harebell.wire.v09.transitional_types import INLINE

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.connection import Connection
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_TRANSFER = (120, 10)
_TTL_MAX_MS = 315_360_000_000
"""Ten years, as for the expiration of class basic."""
_GENERIC, _NOT_IMMEDIATE = 0, 1
"""The reject codes of the document."""
_ID_BYTES = 16
_PLAIN = Properties(b"\0\0")


def take(channel: TransitionalChannel, payload: bytes) -> None:
    """message.transfer, as it was received."""
    transfer = read_transfer(payload, layer_of(channel.connection).note_dialect)
    check_ticket(channel, transfer.ticket, WRITING, _TRANSFER)
    exchange = _exchange(channel, transfer.destination)
    if transfer.kind == INLINE:
        _publish(channel, exchange, transfer, transfer.value, channel.completions.last)
        return
    # By reference: the transfer is complete when the body is closed and the message published.
    reference = references_of(channel).get(transfer.value, _TRANSFER[1])
    reference.waiting.append((channel.completions.hold(), transfer))


def close(channel: TransitionalChannel, method: m.MessageClose) -> None:
    """message.close: publish the transfers that waited for the body."""
    reference = references_of(channel).close(method.reference)
    body = reference.body()
    completions = channel.completions
    try:
        for number, transfer in reference.waiting:
            # Again, as the exchange may have been deleted since the transfer.
            exchange = _exchange(channel, transfer.destination)
            result = _publish(channel, exchange, transfer, body, number)
            ticket = channel.connection.commit.ticket if result & PENDING else 0
            completions.done(number, ticket)
    finally:
        channel.connection.registry.publishers.finished(channel.connection)
    if reference.waiting and completions.asked:
        channel.committed()


def references_of(channel: TransitionalChannel) -> References:
    """Return the references of a session."""
    references: References | None = channel.references
    if references is None:
        connection = channel.connection
        vhost, user = channel.vhost.name, connection.user.name
        references = channel.references = References(
            connection.registry.gauge,
            _checkpoints(connection),
            lambda identifier: (vhost, user, identifier),
            connection.message_max,
        )
    return references


def _checkpoints(connection: Connection) -> Checkpoints:
    registry, clock = connection.registry, connection.broker.clock
    if registry.checkpoints is None:
        registry.checkpoints = Checkpoints(registry.gauge, lambda: clock.steady)
    checkpoints: Checkpoints = registry.checkpoints
    return checkpoints


def _exchange(channel: TransitionalChannel, name: str) -> Exchange:
    """Find the exchange of a destination, for a user that may write to it."""
    return writable_exchange(channel, name, lambda text: soft(403, text, *_TRANSFER))


def _publish(
    channel: TransitionalChannel, exchange: Exchange, transfer: Transfer, body: bytes, number: int
) -> int:
    """Check, route and publish to the queues; return their result bits."""
    connection = channel.connection
    if len(body) > connection.message_max:
        raise too_large(len(body), connection.message_max, _TRANSFER[1])
    now = connection.broker.clock.ms
    raw = stamped_transfer(transfer.raw, now, _message_id(channel, transfer))
    try:
        message, queues, properties = _routed(channel, exchange, transfer, raw, body)
    except ProtocolError as error:
        # Shared checks name basic.publish.
        raise ProtocolError(error.code, error.text, *_TRANSFER, error.hard) from None
    if channel.router.origins:
        message.origin = connection.origin
    details = details_of(channel).exchange(exchange.name)
    channel.counts_at(details)
    confirms = channel.confirms is not None
    channel.count_publish(connection, exchange, details, len(body), len(queues), confirms)
    if channel.router.tracer is not None:
        published(channel, message, properties, queues)
    return _hand_over(channel, transfer, message, queues, number)


def _message_id(channel: TransitionalChannel, transfer: Transfer) -> str:
    """Make a unique message id: a random UUID (RFC 4122, version 4)."""
    if not lacks_id(transfer.raw):
        return ""
    return str(uuid.UUID(bytes=channel.connection.settings.rng(_ID_BYTES), version=4))


def _routed(
    channel: TransitionalChannel, exchange: Exchange, transfer: Transfer, raw: bytes, body: bytes
) -> tuple[Message, tuple[Queue, ...], Properties]:
    """Return the message, its queues, and its properties for the firehose."""
    connection, key = channel.connection, transfer.routing_key
    properties = parse_transfer(raw)
    decoded = decode_transfer(raw)
    if decoded.ttl > _TTL_MAX_MS:
        raise soft(406, f"ttl {decoded.ttl} is longer than {_TTL_MAX_MS} ms", *_TRANSFER)
    check_topic(channel, WRITE, exchange.name, key)
    if connection.intercepts or _asks_for_more(decoded):
        # As a message of class basic, whose rules for these properties are not written twice.
        basic = to_basic(new_message(exchange.name, key, properties, b""))
        basic_properties = parse_properties(basic.raw)
        if connection.intercepts:
            basic_properties = intercepted(channel.connection, basic_properties)
        for further in further_keys(decoded.application_headers):
            check_topic(channel, WRITE, exchange.name, further)
        message, queues = prepared(channel, exchange, key, basic_properties, body)
        return message, queues, basic_properties
    if decoded.user_id:
        check_user_id(decoded.user_id, connection.user)
    message = new_message(exchange.name, key, properties, body)
    queues = channel.router.route(exchange, message)
    if decoded.ttl:
        if channel.transaction is not None:
            message.due = due_at_commit(decoded.ttl)
        else:
            message.due = connection.broker.clock.steady + decoded.ttl
    return message, queues, _PLAIN


def _asks_for_more(decoded: TransferProperties) -> bool:
    """True if there are further routing keys, or a direct reply-to."""
    return decoded.reply_to == REPLY_TO or any(n in decoded.application_headers for n in (CC, BCC))


def _hand_over(
    channel: TransitionalChannel,
    transfer: Transfer,
    message: Message,
    queues: tuple[Queue, ...],
    number: int,
) -> int:
    """Publish a routed message to its queues, or reject it as its publisher requires."""
    where = rendered("exchange", message.exchange, channel.vhost.name)
    of = f"transfer {number} to {where} with routing key '{message.routing_key}'"
    if not queues:
        if transfer.reject_unroutable:
            count_return(channel, message)
            _reject(channel, _GENERIC, f"NO_ROUTE - {of}")
        else:
            count_drop(channel, message)
        if channel.transaction is None:
            return unrouted(message)
        channel.transaction.publish(message, queues, RETURNED)
        return 0
    if transfer.immediate:
        all_queues, queues = queues, takers(queues, message)
        # A queue without a ready consumer rejects the message: its alternate exchange gets it.
        passed_on = [_pass_on(channel, q, message) for q in all_queues if q not in queues]
        if not queues and not any(passed_on):
            count_return(channel, message)
            _reject(channel, _NOT_IMMEDIATE, f"NO_CONSUMERS - {of}")
            return 0
    if channel.transaction is not None:
        channel.transaction.publish(message, queues, 0)
        return 0
    result = channel.accept(message, queues, 0)
    if result & REJECTED:
        _reject(channel, _GENERIC, f"RESOURCE_ERROR - a queue is full: {of}")
    return result


def _pass_on(channel: TransitionalChannel, queue: Queue, message: Message) -> bool:
    """Publish a message to the alternate exchange of a queue; False where it has none."""
    name = queue.arguments.get(ALTERNATE)
    exchange = channel.vhost.exchanges.get(name) if isinstance(name, str) else None
    if exchange is None:
        return False
    others = channel.router.route(exchange, message)
    if not others:
        unrouted(message)
    for other in others:
        # The queue that has rejected it may be bound there as well.
        if other is not queue:
            other.publish(message)
    return True


def _reject(channel: TransitionalChannel, code: int, text: str) -> None:
    """message.reject: refuse the client's transfer."""
    data = text.encode(errors="backslashreplace")[:REPLY_TEXT_BYTES]
    reject = m.MessageReject(code=code, text=data.decode(errors="ignore"))
    channel.connection.send(channel.number, reject)


RAW = {HEAD: take}
"""Handlers that decode the method themselves."""
