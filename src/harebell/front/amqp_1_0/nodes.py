"""Nodes that the broker makes for a link: dynamic ones, and queues of version 1 addresses.

dynamic, capability temporary-queue           exclusive queue, deleted with its link
dynamic target, capability temporary-topic    exchange, deleted with its link
dynamic, capability rabbitmq:volatile-queue   direct reply-to: nothing keeps a message
source /exchange/X/K, /topic/K                exclusive queue that is bound, deleted with its link
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.auth.authority import Undecided
from harebell.auth.permissions import WRITE
from harebell.base.errors import Refusal
from harebell.front.amqp_1_0.addresses import Address
from harebell.front.amqp_1_0.errors import NOT_IMPLEMENTED, LinkError, SessionError, of_link
from harebell.front.common.names import generated
from harebell.front.common.permission import EXCHANGE, QUEUE, check
from harebell.front.operations.bind import BindingRequest, bind, check_binding
from harebell.front.operations.caller import Caller, caller_of
from harebell.front.operations.declare import (
    ExchangeOptions,
    QueueOptions,
    declare_exchange,
    declare_queue,
)
from harebell.front.operations.publish import writable_exchange
from harebell.model.queue.reply import REPLY_PREFIX, ReplyQueue
from harebell.wire.v1.composites import DeleteOnClose, Source, Target
from harebell.wire.v1.values import Array, Symbol

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.session import Session
    from harebell.model.queue.contract import Queue

TEMPORARY = "temporary-queue"
TEMPORARY_TOPIC = "temporary-topic"
VOLATILE = "rabbitmq:volatile-queue"
_PREFIX = "amq.dyn-"
_GENERATED = "amq.gen-"
_TOPIC = "TempTopic-"
_LINK_DETACH = "link-detach"
_LIFETIME = Symbol("lifetime-policy")
_MODES = Symbol("supported-dist-modes")
_PART_CHARACTERS = 60
"""Characters of a container and of a link in the name of a dynamic queue, which has 255 octets."""


def make_dynamic(session: Session, asked: Source | Target, link: str) -> Queue:
    """Make the queue of a dynamic source or target.

    Raises:
        LinkError: not-implemented, it asks for another kind of node.
        Refusal: the user may not, or a limit is reached.
    """
    if (
        TEMPORARY not in asked.capabilities
        and VOLATILE not in asked.capabilities
        and (asked.capabilities)
    ):
        kinds = ", ".join(asked.capabilities)
        raise LinkError(NOT_IMPLEMENTED, f"dynamic {asked.NAME} not supported: {kinds}")
    connection = session.connection
    parts = (_cut(connection.container), _cut(link))
    random = base64.urlsafe_b64encode(connection.settings.rng(16)).rstrip(b"=").decode()
    name = "-".join([_PREFIX.rstrip("-"), *[part for part in parts if part], random])
    return _exclusive(caller_of(session), name)


def _cut(name: str) -> str:
    """Return a name as it may be in another one: octets decide about the length."""
    return name.encode(errors="replace")[:_PART_CHARACTERS].decode(errors="ignore")


def _exclusive(caller: Caller, name: str) -> Queue:
    options = QueueOptions(durable=True, exclusive=True, generated=True)
    return declare_queue(caller, name, options)


def make_temporary_topic(session: Session, internal: Callable[[str], Exception]) -> str:
    """Make the exchange of a dynamic target that is a topic; return its name.

    Args:
        session: of the link.
        internal: makes the error for an internal exchange.

    Raises:
        Refusal: the user may not.
    """
    name = generated(_TOPIC, session.connection.settings.rng)
    check(session, WRITE, EXCHANGE, name)
    declare_exchange(caller_of(session), name, "fanout", ExchangeOptions())
    writable_exchange(session, name, internal)
    return name


def check_again(session: Session, action: str, kind: str, name: str) -> None:
    """End the session of a link whose user may not use its node any more."""
    try:
        check(session, action, kind, name)
    except Undecided:
        # The backend is asked when the user does something next.
        return
    except Refusal as refusal:
        error = of_link(refusal)
        session.fail(error if error is not None else SessionError("", ""))


def drop_owned(link: Any) -> None:
    """Delete the queue or the exchange that was made for a link, of either direction."""
    if not link.owned:
        return
    vhost = link.session.vhost
    name, link.owned = link.owned, ""
    node = vhost.exchanges.get(name) if name.startswith(_TOPIC) else vhost.queues.get(name)
    if node is not None:
        vhost.retire(node)


def dynamic_answer(address: str) -> dict[str, Any]:
    """Return the fields of a dynamic terminus that the broker has filled in."""
    return {
        "address": address,
        "dynamic": True,
        "expiry_policy": _LINK_DETACH,
        "durable": 0,
        "timeout": 0,
        "dynamic_node_properties": {
            _LIFETIME: DeleteOnClose(),
            _MODES: Array(0xA3, [Symbol("move")]),
        },
    }


def make_subscription(session: Session, address: Address, arguments: dict[str, str]) -> Queue:
    """Make the queue of a source that names an exchange, and bind it with these arguments.

    Raises:
        Refusal: the user may not, the exchange does not exist, or a limit is reached.
    """
    caller = caller_of(session)
    name = generated(_GENERATED, session.connection.settings.rng)
    key = address.key or ""
    # All checks come before the queue: a refused link leaves nothing behind.
    check_binding(caller, QUEUE, name, address.exchange, key, event="")
    session.vhost.exchange(address.exchange)
    queue = _exclusive(caller, name)
    try:
        bind(caller, BindingRequest(QUEUE, name, address.exchange, key, arguments))
    except Refusal:
        session.vhost.retire(queue)
        raise
    return queue


def is_volatile(asked: Source) -> bool:
    """True if a source asks for direct replies."""
    return asked.dynamic and VOLATILE in asked.capabilities


def make_volatile(session: Session) -> ReplyQueue:
    """Make the pseudo queue of direct replies: the name is a secret of its requester."""
    name = generated(REPLY_PREFIX, session.connection.settings.rng)
    return ReplyQueue(name, session.vhost.name, session.router.replies)
