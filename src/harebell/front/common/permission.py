"""Permission checks, made by every method before it does anything.

docs/reference/permissions.md lists the permissions that each method needs; tests compare it.
Every method checks before it looks up a resource: only users with a permission for a name learn
whether the resource exists.

A topic is the routing key at an exchange that routes by topic, for users with topic permissions. A
channel checks again when its exchange or the router's epoch changes, which every change of
permissions increments, so an ordinary publish has no further cost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harebell.auth.authority import Undecided
from harebell.auth.permissions import ACTIONS, CONFIGURE, READ, WRITE
from harebell.base.errors import ErrorKind, Refusal
from harebell.model.exchange import DELAYED, DELAYED_TYPE
from harebell.model.exchange.topic import TopicExchange
from harebell.model.queue.arguments import DEAD_LETTER_EXCHANGE, DEAD_LETTER_KEY
from harebell.model.queue.features.alternate_exchange import ALTERNATE
from harebell.model.resource import refused, rendered

if TYPE_CHECKING:
    from harebell.auth.topics import TopicRule
    from harebell.front.common.channel_like import Principal
    from harebell.model.exchange.kind import Exchange

QUEUE = "queue"
EXCHANGE = "exchange"
DEFAULT_EXCHANGE = "amq.default"
"""The name of the default exchange in permissions."""


def check(principal: Principal, action: str, kind: str, name: str) -> None:
    """Refuse an action without the permission for it.

    Args:
        principal: the user and vhost.
        action: configure, write or read.
        kind: QUEUE or EXCHANGE.
        name: of the queue or exchange, which need not exist.

    Raises:
        Refusal: ACCESS_REFUSED.
    """
    vhost = principal.vhost.name
    user = principal.user
    # RabbitMQ gives the default exchange this name in permissions.
    if kind == EXCHANGE and name == "":
        name = DEFAULT_EXCHANGE
    if not user.allows(vhost, action, kind, name):
        resource = rendered(kind, name, vhost)
        text = f"{action} access to {resource} refused for user '{user.name}'"
        if action == CONFIGURE:
            facts = {"name": name, "vhost": vhost}
            principal.vhost.recorder.events.record(f"{kind}.refused", facts, text)
        raise refused(text)


@contextmanager
def audited(principal: Principal, event: str, facts: Mapping[str, Any]) -> Iterator[None]:
    """Have the audit trail take it if the user may not do what a block checks.

    Args:
        principal: the user and vhost.
        event: the routing key of the event of the act; "" for an act that has no line.
        facts: the object, as in that event but for the vhost.
    """
    try:
        yield
    except Refusal as refusal:
        if (
            event
            and refusal.kind is ErrorKind.ACCESS_REFUSED
            and not isinstance(refusal, Undecided)
        ):
            vhost = principal.vhost
            vhost.recorder.events.record(event, {"vhost": vhost.name, **facts}, refusal.text)
        raise


def check_some(principal: Principal, why: str, *actions: str) -> None:
    """Refuse to keep something for a user without a permission for any name in the vhost.

    Args:
        principal: the user and vhost.
        why: what is refused, such as "a named publisher".
        actions: the permissions of which one is enough: configure, write, read.

    Raises:
        Refusal: ACCESS_REFUSED.
    """
    vhost, user = principal.vhost.name, principal.user
    if not any(user.allows_some(vhost, action) for action in actions):
        raise refused(
            f"{why} needs {' or '.join(actions)} access to some name in vhost '{vhost}': refused "
            f"for user '{user.name}'"
        )


def may_see(principal: Principal, kind: str, name: str) -> bool:
    """True if the user has any permission for a name."""
    if kind == EXCHANGE and name == "":
        name = DEFAULT_EXCHANGE
    vhost = principal.vhost.name
    return any(principal.user.allows(vhost, action, kind, name) for action in ACTIONS)


def check_any(principal: Principal, kind: str, name: str) -> None:
    """Refuse to describe a resource, or say whether it exists, without any permission for it.

    Args:
        principal: the user and vhost.
        kind: QUEUE or EXCHANGE.
        name: of the queue or exchange, which need not exist.

    Raises:
        Refusal: ACCESS_REFUSED.
    """
    if not may_see(principal, kind, name):
        shown = DEFAULT_EXCHANGE if kind == EXCHANGE and name == "" else name
        resource = rendered(kind, shown, principal.vhost.name)
        raise refused(f"access to {resource} refused for user '{principal.user.name}'")


def check_binding_seen(principal: Principal, exchange: str, queue: str, key: str) -> None:
    """Refuse to say whether a binding exists to users without permissions for both of its ends.

    Args:
        principal: the user and vhost.
        exchange: the source.
        queue: the destination; "" for none.
        key: the binding key, which is the name of a queue at the default exchange.

    Raises:
        Refusal: ACCESS_REFUSED.
    """
    check_any(principal, EXCHANGE, exchange)
    for name in (queue, key if exchange == "" else ""):
        if name:
            check_any(principal, QUEUE, name)


def topic_of(principal: Principal, exchange: Exchange) -> TopicRule | None:
    """Return the topic permission of the user for an exchange; None if all keys are allowed."""
    delays = exchange.KIND == DELAYED
    # A delaying exchange routes like the type that it delays for.
    kind = exchange.arguments.get(DELAYED_TYPE) if delays else exchange.KIND
    if kind != TopicExchange.KIND:
        return None
    return principal.user.topics(principal.vhost.name, exchange.name)


def check_topic(
    principal: Principal, action: str, name: str, key: str, *, made_later: bool = False
) -> None:
    """Refuse a routing key that the user may not use with an exchange.

    Args:
        principal: the user and vhost.
        action: write or read.
        name: of the exchange, which need not exist.
        key: the routing key.
        made_later: whether an exchange that does not exist counts as one that routes by topic.

    Raises:
        Refusal: ACCESS_REFUSED.
    """
    exchange = principal.vhost.exchanges.get(name)
    topic = None if exchange is None else topic_of(principal, exchange)
    # It may be declared as a topic exchange later, and then this key is not checked again.
    if exchange is None and made_later:
        topic = principal.user.topics(principal.vhost.name, name)
    if topic is not None and not topic.allow(action, key):
        resource = rendered(EXCHANGE, name, principal.vhost.name)
        user = principal.user.name
        raise refused(f"{action} access to topic '{key}' in {resource} refused for user '{user}'")


def check_other_exchange(
    principal: Principal, kind: str, name: str, arguments: Mapping[str, Any], key: str
) -> None:
    """Refuse a resource that forwards messages to an exchange that the user may not write to."""
    other = arguments.get(key)
    if isinstance(other, str):
        # RabbitMQ needs both: forwarding reads from the one and writes to the other.
        check(principal, READ, kind, name)
        check(principal, WRITE, EXCHANGE, other)


def check_forwarding(principal: Principal, name: str, arguments: Mapping[str, Any]) -> None:
    """Refuse a queue that forwards messages to an exchange that the user may not write to.

    The exchange may be for dead letters, or the alternate one of 0-10, which every version can
    write as an argument. A routing key for all dead letters is checked, too: it could otherwise
    bypass the user's topic permissions.

    Raises:
        Refusal: ACCESS_REFUSED.
    """
    for key in (DEAD_LETTER_EXCHANGE, ALTERNATE):
        check_other_exchange(principal, QUEUE, name, arguments, key)
    other, fixed = arguments.get(DEAD_LETTER_EXCHANGE), arguments.get(DEAD_LETTER_KEY)
    if isinstance(other, str) and isinstance(fixed, str):
        check_topic(principal, WRITE, other, fixed, made_later=True)
