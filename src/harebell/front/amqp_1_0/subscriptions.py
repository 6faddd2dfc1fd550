"""Subscriptions: sources that are topics, as JMS clients use them.

    capability topic             the address is an exchange, or a key of amq.topic
    expiry-policy never          durable: the queue stays until the subscription is ended
    capability shared            links whose names are equal up to `|` get messages in turns
    capability global            the name is not one of the container

Every subscription is an ordinary queue that is bound to the exchange. One that is durable or shared
has a name of Broker-J, by which its link finds it again:

    qpidsub_/CONTAINER_/NAME_/durable      qpidsub_/_global__/NAME_/nondurable

A client ends a durable subscription by a closed detach, of its own link or of one that it attaches
without a source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import CONFIGURE, READ, WRITE
from harebell.base.limits import NAME_BYTES
from harebell.front.amqp_1_0.addresses import (
    Address,
    Addressing,
    exchange_address,
    queue_of,
    source,
    target,
)
from harebell.front.amqp_1_0.errors import (
    ILLEGAL_STATE,
    INVALID_FIELD,
    NOT_FOUND,
    AmqpError,
    LinkError,
)
from harebell.front.amqp_1_0.filters import selector_in
from harebell.front.amqp_1_0.nodes import TEMPORARY_TOPIC, make_subscription
from harebell.front.amqp_1_0.termini import NEVER, POLICIES
from harebell.front.common.permission import EXCHANGE, QUEUE, check
from harebell.front.operations.bind import (
    BOUND,
    BindingRequest,
    audited_binding,
    bind,
    check_binding,
    unbind,
)
from harebell.front.operations.caller import caller_of
from harebell.front.operations.declare import QueueOptions, declare_queue
from harebell.front.operations.delete import deletable_queue, queue_deletion
from harebell.kernels.performatives import DRAIN, ECHO
from harebell.model.queue.arguments import SELECTOR, selector_of
from harebell.wire.v1.composites import Attach, Source
from harebell.wire.v1.values import Symbol

if TYPE_CHECKING:
    from harebell.front.amqp_1_0.connection import Connection
    from harebell.front.amqp_1_0.session import Session
    from harebell.model.exchange import Exchange
    from harebell.model.queue.contract import Queue
    from harebell.wire.v1.composites import Target

TOPIC, SHARED, GLOBAL = "topic", "shared", "global"
PREFIX = "qpidsub_/"
_DEFAULT = "amq.topic"
_END = "_/"
_GLOBAL = "_global__/"
_DURABLE, _NONDURABLE = "durable", "nondurable"


def topic_of(session: Session, terminus: Source | Target) -> Address | None:
    """Return the exchange and key that a terminus means as a topic; None if it means none.

    Raises:
        LinkError: the address is malformed, or that of a queue.
    """
    address = str(terminus.address)
    addressing = session.connection.addressing
    if TOPIC not in terminus.capabilities and TEMPORARY_TOPIC not in terminus.capabilities:
        return None
    vhost = session.vhost
    is_source = isinstance(terminus, Source)
    if not address.startswith("/") and addressing is not Addressing.STRICT:
        name, slash, key = address.partition("/")
        act = READ if is_source else WRITE
        # Who may not use the exchange learns as much as if it were missing.
        if name in vhost.exchanges and session.user.allows(vhost.name, act, EXCHANGE, name):
            return Address(exchange=name, key=key if slash else None)
        return Address(exchange=_DEFAULT, key=address)
    if queue_of(address) is None:
        reads = is_source and not address.startswith("/exchanges/")
        where = (source if reads else target)(address, addressing)
        if not where.queue:
            return where
    raise LinkError(ILLEGAL_STATE, f"the address {address!r:.200} is that of a queue, no topic")


def subscribe(session: Session, asked: Attach, where: Address) -> tuple[Queue, bool]:
    """Find or make the queue of a subscription.

    Args:
        session: of the link.
        asked: the attach of the client.
        where: exchange and key.

    Returns:
        The queue, and whether it ends with the link.

    Raises:
        Refusal: the user may not, the exchange does not exist, or a limit is reached.
        LinkError: the name is too long, or the subscription is in use for another topic.
    """
    terminus: Source = asked.source
    caller = caller_of(session)
    lasts = POLICIES[terminus.expiry_policy] == NEVER
    is_own = not lasts and SHARED not in terminus.capabilities
    name = "" if is_own else name_of(session, asked, terminus.capabilities, lasts=lasts)
    event = BOUND if lasts else ""
    # First, so that a user without the permission does not learn which exchanges exist.
    with audited_binding(caller, QUEUE, name, where.exchange, where.key or "", event):
        check(session, READ, EXCHANGE, where.exchange)
    exchange = session.vhost.exchange(where.exchange)
    key = where.key or ("#" if exchange.KIND == "topic" else "")
    arguments = _selection(terminus, exchange)
    if is_own:
        address = Address(exchange=exchange.name, key=key)
        return make_subscription(session, address, arguments), True
    # All checks come before the queue: a refused link leaves nothing behind.
    check(session, READ, QUEUE, name)
    check(session, CONFIGURE, QUEUE, name)
    check_binding(caller, QUEUE, name, exchange.name, key, event=event)
    _leave_other_topic(session, name, exchange.name, key, arguments)
    queue = declare_queue(caller, name, QueueOptions(durable=lasts, auto_delete=not lasts))
    bind(caller, BindingRequest(QUEUE, name, exchange.name, key, arguments))
    return queue, False


def _selection(terminus: Source, exchange: Exchange) -> dict[str, str]:
    """Return the arguments of the binding of a subscription: its selector, if there is one.

    The consumer has it, too. What no consumer would get does not come into the queue.

    Raises:
        Refusal: the selector is wrong.
    """
    arguments = selector_in(terminus.filter)
    selector = selector_of(arguments, "the consumer")
    if selector is None or exchange.chooses or not selector.is_settled:
        return {}
    return arguments


def name_of(session: Session, asked: Attach, capabilities: Any, *, lasts: bool) -> str:
    """Return the name of the queue of a subscription.

    Raises:
        LinkError: invalid-field, it is too long.
    """
    own, _, suffix = asked.name.partition("|")
    is_global = GLOBAL in capabilities or suffix.startswith(GLOBAL)
    container = _GLOBAL if is_global else _mangled(session.connection.container) + _END
    kind = _DURABLE if lasts else _NONDURABLE
    # Only what is shared has numbers behind its name.
    name = f"{PREFIX}{container}{_mangled(own if suffix else asked.name)}{_END}{kind}"
    if len(name.encode(errors="replace")) > NAME_BYTES:
        text = f"attach: container-id and name are too long for a subscription: {name:.100}..."
        raise LinkError(INVALID_FIELD, text)
    return name


def _mangled(name: str) -> str:
    # Broker-J: with this no name contains the end of one.
    return name.replace("_", "__")


def _leave_other_topic(
    session: Session, name: str, exchange: str, key: str, arguments: dict[str, str]
) -> None:
    """Empty a subscription that was one to another topic, or with another selector, as JMS has it.

    Raises:
        LinkError: illegal-state, it is in use.
    """
    queue = session.vhost.queues.get(name)
    if queue is None:
        return
    bindings = list((queue.bound or {}).values())
    if any(
        each.source.name == exchange
        and each.routing_key == key
        and each.arguments.get(SELECTOR) == arguments.get(SELECTOR)
        for each in bindings
    ):
        return
    if queue.consumers:
        text = f"the subscription '{name}' is in use for another topic or with another selector"
        raise LinkError(ILLEGAL_STATE, text)
    caller = caller_of(session)
    for each in bindings:
        unbind(
            caller,
            BindingRequest(QUEUE, name, each.source.name, each.routing_key, each.arguments),
        )
    queue.purge()


# --- the end ------------------------------------------------------------------------------------


def check_end(session: Session, link: Any) -> str:
    """Return the durable subscription that ends with a closed detach of a link; "" for none.

    Raises:
        Refusal: the user may not delete it.
        Undecided: the backend of the user has to be asked first; nothing is done yet.
    """
    terminus = link.terminus
    if isinstance(link, SubscriptionLink):
        name = link.queue
    elif terminus is None or not terminus.sends or terminus.policy != NEVER:
        return ""
    else:
        name = str(link.queue.name)
    if not name.startswith(PREFIX):
        return ""
    check(session, CONFIGURE, QUEUE, name)
    return name


def end(session: Session, name: str) -> None:
    """Delete the queue of a subscription that no other link uses."""
    caller = caller_of(session)
    connection = session.connection

    def step() -> bool:
        queue = session.vhost.queues.get(name)
        if queue is not None and not queue.consumers:
            queue = deletable_queue(caller, name, if_unused=False, if_empty=False)
            connection.perform(queue_deletion(caller, name, queue, bool))
        return True

    # After the end of the link, whose consumer may be removed in slices.
    connection.perform(step)


def look_up(session: Session, asked: Attach) -> Attach:
    """Attach a link to a durable subscription, to look at it or to end it.

    Raises:
        LinkError: not-found.
    """
    wished = (*asked.desired_capabilities, *asked.offered_capabilities)
    name = name_of(session, asked, wished, lasts=True)
    check(session, READ, QUEUE, name)
    queue = session.vhost.queues.get(name)
    if queue is None:
        raise LinkError(NOT_FOUND, f"no subscription '{asked.name}': no queue '{name}'")
    bindings = list((queue.bound or {}).values())
    address = exchange_address(bindings[0].source.name, bindings[0].routing_key) if bindings else ""
    session.links[asked.handle] = SubscriptionLink(session, asked.name, asked.handle, name)
    return Attach(
        asked.name,
        asked.handle,
        False,
        source=Source(
            address or None,
            durable=1,
            expiry_policy=Symbol("never"),
            capabilities=(Symbol(TOPIC),),
        ),
        target=asked.target,
        initial_delivery_count=0,
    )


class SubscriptionLink:
    """A link that was attached without a source: it carries nothing.

    Args:
        session: the session it is attached to.
        name: of the link.
        handle: of both sides.
        queue: the name of the queue of the subscription.

    Attributes:
        connection: of the session.
        owned: "": no queue was made for the link.
        terminus: None: nothing of the link stays.
    """

    def __init__(self, session: Session, name: str, handle: int, queue: str) -> None:
        self.session = session
        self.connection: Connection = session.connection
        self.name = name
        self.handle = handle
        self.queue = queue
        self.owned = ""
        self.terminus = None

    def attached(self) -> None:
        """Do nothing: the client detaches it next."""

    def take_flow(self, delivery_count: int, credit: int, flags: int) -> None:
        """Answer a drain: there is nothing."""
        if flags & (DRAIN | ECHO):
            passed = max(credit, 0) if flags & DRAIN else 0
            count = max(delivery_count, 0) + passed
            left = max(credit, 0) - passed
            self.session.send_flow(self.handle, count, left, 0, flags & DRAIN != 0)

    def fail(self, error: AmqpError) -> None:
        """Detach the link because of an error."""
        self.session.detach(self, error)

    def check_again(self) -> None:
        """Do nothing: the end of the subscription is checked by itself."""

    def end(self) -> None:
        """Do nothing: the link has nothing."""

    def close(self) -> None:
        """Do nothing: the link has nothing."""
