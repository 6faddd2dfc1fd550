"""Nodes that the broker makes for a link: dynamic ones, and queues of version 1 addresses.

dynamic, capability temporary-queue           exclusive queue, deleted with its link
dynamic, capability rabbitmq:volatile-queue   direct reply-to: nothing keeps a message
source /exchange/X/K, /topic/K                exclusive queue that is bound, deleted with its link
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from harebell.base.errors import Refusal
from harebell.front.amqp_1_0.addresses import Address, queue_address
from harebell.front.amqp_1_0.errors import NOT_IMPLEMENTED, LinkError
from harebell.front.common.names import generated
from harebell.front.common.permission import QUEUE
from harebell.front.operations.bind import BindingRequest, bind, check_binding
from harebell.front.operations.caller import Caller, caller_of
from harebell.front.operations.declare import QueueOptions, declare_queue
from harebell.model.queue.reply import REPLY_PREFIX, ReplyQueue
from harebell.wire.v1.composites import DeleteOnClose, Source, Target
from harebell.wire.v1.values import Array, Symbol

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.session import Session
    from harebell.model.queue.contract import Queue

TEMPORARY = "temporary-queue"
VOLATILE = "rabbitmq:volatile-queue"
_PREFIX = "amq.dyn-"
_GENERATED = "amq.gen-"
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


def dynamic_answer(asked: Source | Target, queue: Queue) -> dict[str, Any]:
    """Return the fields of a dynamic terminus that the broker has filled in."""
    return {
        "address": queue_address(queue.name),
        "dynamic": True,
        "expiry_policy": _LINK_DETACH,
        "durable": 0,
        "timeout": 0,
        "dynamic_node_properties": {
            _LIFETIME: DeleteOnClose(),
            _MODES: Array(0xA3, [Symbol("move")]),
        },
    }


def make_subscription(session: Session, address: Address) -> Queue:
    """Make the queue of a source that names an exchange, and bind it.

    Raises:
        Refusal: the user may not, the exchange does not exist, or a limit is reached.
    """
    caller = caller_of(session)
    name = generated(_GENERATED, session.connection.settings.rng)
    key = address.key or ""
    # All checks come before the queue: a refused link leaves nothing behind.
    check_binding(caller, QUEUE, name, address.exchange, key)
    session.vhost.exchange(address.exchange)
    queue = _exclusive(caller, name)
    try:
        bind(caller, BindingRequest(QUEUE, name, address.exchange, key))
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


def drop_owned(link: Any) -> None:
    """Delete the queue that was made for a link (`SendingLink`, `ReceivingLink`)."""
    if link.owned:
        queue = link.session.vhost.queues.get(link.owned)
        link.owned = ""
        if queue is not None:
            link.session.vhost.retire(queue)
