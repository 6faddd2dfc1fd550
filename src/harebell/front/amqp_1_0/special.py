"""Messages with fields that the broker processes, beyond routing.

    header.ttl                       milliseconds after the arrival in which the message expires
    properties.user-id               must be the publisher's own
    properties.to, subject           where it goes, on links whose target does not say it
    annotation x-cc                  further routing keys

Other messages do not use this module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from harebell.auth.permissions import WRITE
from harebell.auth.users import IMPERSONATOR
from harebell.base.message import Message, Properties, new_message
from harebell.front.amqp_1_0.addresses import Address, message_to
from harebell.front.amqp_1_0.errors import (
    INVALID_FIELD,
    NOT_FOUND,
    PRECONDITION_FAILED,
    UNAUTHORIZED_ACCESS,
    LinkError,
)
from harebell.front.common.permission import EXCHANGE, check, check_topic
from harebell.model.firehose import Actor
from harebell.model.reserved import check_length
from harebell.model.resource import missing
from harebell.model.transaction import due_at_commit
from harebell.wire.v1.sections import HEADER, PROPERTIES, Sections
from harebell.wire.v1.values import Symbol

if TYPE_CHECKING:
    from harebell.auth.topics import TopicRule
    from harebell.auth.users import User
    from harebell.front.amqp_1_0.addresses import Addressing
    from harebell.front.amqp_1_0.connection import Connection
    from harebell.front.common.channel_like import Principal
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue
    from harebell.model.router import Router
    from harebell.model.vhost import VHost

COPIES = Symbol("x-cc")
_LONGEST_MS = 315_360_000_000_000
"""Ten thousand years: longer times to live mean none."""


class Publisher(Protocol):
    """The link of a message; see `ReceivingLink`."""

    number: int
    address: Address | None
    addressing: Addressing
    exchange: str
    vhost: VHost
    router: Router
    topic: TopicRule | None
    transaction: Any
    connection: Connection

    @property
    def user(self) -> User:
        """The user whose permissions are checked."""


def destination_of(link: Publisher, properties: Properties) -> tuple[str, str]:
    """Return the exchange and the routing key of a message that says itself where it goes.

    Raises:
        LinkError: it does not, or names nothing that exists.
        Refusal: the routing key is too long.
    """
    exchange, key = _named(link, properties)
    check_length("routing key", key)
    return exchange, key


def _named(link: Publisher, properties: Properties) -> tuple[str, str]:
    fields = Sections(properties.raw).properties()
    if link.address is not None:
        return link.exchange, fields.subject or ""
    if not fields.to:
        text = "anonymous terminus requires 'to' address to be set"
        raise LinkError(PRECONDITION_FAILED, text)
    try:
        found = message_to(fields.to, link.addressing)
    except LinkError as error:
        raise LinkError(PRECONDITION_FAILED, f"bad 'to' address string: {error.text}") from None
    found = written(link, found)
    if found.queue:
        return "", found.queue
    if found.exchange not in link.vhost.exchanges:
        check(link, WRITE, EXCHANGE, found.exchange)
        text = f"no exchange '{found.exchange}' in vhost '{link.vhost.name}'"
        raise LinkError(NOT_FOUND, text)
    return found.exchange, found.key if found.key is not None else fields.subject or ""


def written(principal: Principal, address: Address) -> Address:
    """Return what an address names for a user who publishes there: a bare name has two meanings.

    Raises:
        Refusal: there is neither, or the user may not write there and does not learn what there is.
    """
    if not address.either:
        return address
    name, vhost = address.queue, principal.vhost
    if name in vhost.queues:
        return Address(queue=name)
    if name not in vhost.exchanges or not principal.user.allows(vhost.name, WRITE, EXCHANGE, name):
        check(principal, WRITE, EXCHANGE, "")
        check(principal, WRITE, EXCHANGE, name)
        raise missing("queue", name, vhost.name)
    return Address(exchange=name, key=address.key)


def prepared(
    link: Publisher, exchange: Exchange, routing_key: str, properties: Properties, body: bytes
) -> tuple[Message, tuple[Queue, ...]]:
    """Check a message with such fields, and route it.

    Returns:
        The message as its queues get it, and the queues.

    Raises:
        LinkError: a field is invalid or not allowed.
    """
    link.connection.charge(len(properties.raw))
    sections = Sections(properties.raw)
    if PROPERTIES in sections:
        _check_user_id(link, sections.properties().user_id)
    keys = _further_keys(sections.message_annotations())
    if link.topic is not None:
        for key in (routing_key, *keys):
            check_topic(link, WRITE, exchange.name, key)
    message = new_message(exchange.name, routing_key, properties, body)
    queues = link.router.route_keys(exchange, message, keys)
    ttl = sections.header().ttl if HEADER in sections else None
    if ttl is not None and ttl <= _LONGEST_MS:
        if link.transaction is not None:
            # The message enters its queues at the commit: its time begins then.
            message.due = due_at_commit(ttl)
        else:
            message.due = link.connection.broker.clock.steady + ttl
    return message, queues


def _check_user_id(link: Publisher, user_id: bytes | None) -> None:
    """Refuse a user-id of another user."""
    user = link.user
    if not user_id or user_id == user.name.encode() or IMPERSONATOR in user.tags:
        return
    claimed = user_id.decode(errors="replace")
    text = f"user_id property set to '{claimed}' but authenticated user was '{user.name}'"
    raise LinkError(UNAUTHORIZED_ACCESS, text)


def _further_keys(annotations: dict[Any, Any]) -> list[str]:
    """Return the routing keys in the annotation x-cc."""
    value = annotations.get(COPIES)
    if value is None:
        return []
    if type(value) is not list or not all(type(key) is str for key in value):
        raise LinkError(INVALID_FIELD, f"bad value for 'x-cc' message-annotation: {value!r:.100}")
    return value


def trace_publish(
    link: Publisher, message: Message, properties: Properties, queues: tuple[Queue, ...]
) -> None:
    """Send a copy of a published message to the firehose."""
    firehose = link.router.tracer
    if firehose is None:
        return
    keys = [message.routing_key]
    if properties.suspect:
        keys += _further_keys(Sections(properties.raw).message_annotations())
    connection = link.connection
    actor = Actor(connection.peer.connection_name, link.number, link.user.name)
    firehose.published(message, keys, queues, actor)
