"""Declare queues and exchanges."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from harebell.auth.permissions import CONFIGURE
from harebell.front.common.permission import (
    EXCHANGE,
    QUEUE,
    audited,
    check,
    check_any,
    check_forwarding,
    check_other_exchange,
)
from harebell.front.operations.caller import Caller
from harebell.model.exchange.kind import ALTERNATE, Exchange
from harebell.model.queue.arguments import ignored_arguments
from harebell.model.queue.contract import Queue
from harebell.model.reserved import check_exchange_type, check_queue_name


def _nothing() -> None:
    """Do nothing: the version has no further checks."""


class QueueOptions(Struct, frozen=True):
    """The options of a queue declaration.

    Args:
        durable, exclusive, auto_delete, arguments: as in queue.declare.
        generated: whether the broker generated the name.
    """

    durable: bool = False
    exclusive: bool = False
    auto_delete: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)
    generated: bool = False


def find_queue(caller: Caller, name: str) -> Queue:
    """Find a queue for a passive declaration.

    Raises:
        Refusal: it does not exist, is exclusive to another owner, or the user has no permission for
            it.
    """
    check_any(caller, QUEUE, name)
    return caller.vhost.queue(name, caller.owner)


def declare_queue(caller: Caller, name: str, options: QueueOptions) -> Queue:
    """Make a queue, or check that the existing one is the same.

    Raises:
        Refusal: the user may not, a limit is reached, or the existing one is different.
    """
    if not options.generated:
        check_queue_name(name)
    check(caller, CONFIGURE, QUEUE, name)
    return make_queue(caller, name, options)


def make_queue(
    caller: Caller, name: str, options: QueueOptions, more_checks: Callable[[], None] = _nothing
) -> Queue:
    """Make a queue that the user may configure, or check that the existing one is the same.

    Args:
        caller: the user and vhost.
        name: of the queue, never empty.
        options: the flags and arguments of the declaration.
        more_checks: further checks of a version, before a new queue is created.
    """
    vhost = caller.vhost
    # A redeclaration needs neither room nor rights to the exchanges that the arguments name.
    if name not in vhost.queues:
        vhost.check_room(name)
        lasting = {"exclusive": options.exclusive, "auto_delete": options.auto_delete}
        with audited(caller, "queue.created", {"name": name, **lasting}):
            more_checks()
            check_forwarding(caller, name, options.arguments)
    queue = vhost.declare_queue(
        name,
        durable=options.durable,
        exclusive=options.exclusive,
        auto_delete=options.auto_delete,
        arguments=options.arguments,
        owner=caller.owner,
        generated=options.generated,
    )
    _warn_of_ignored(caller, queue)
    return queue


def _warn_of_ignored(caller: Caller, queue: Queue) -> None:
    """Log the arguments of a queue that have no effect here."""
    ignored = ignored_arguments(queue.arguments)
    if ignored:
        names = ", ".join(ignored)
        caller.log("warning", f"queue '{queue.name}': no effect in this version: {names}")


class ExchangeOptions(Struct, frozen=True):
    """The options of an exchange declaration, as in exchange.declare."""

    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: Mapping[str, Any] = field(default_factory=dict)


def find_exchange(caller: Caller, name: str) -> Exchange:
    """Find an exchange for a passive declaration.

    Raises:
        Refusal: it does not exist, or the user has no permission for it.
    """
    check_any(caller, EXCHANGE, name)
    return caller.vhost.exchange(name)


def declare_exchange(caller: Caller, name: str, kind: str, options: ExchangeOptions) -> Exchange:
    """Make an exchange, or check that the existing one is the same.

    Raises:
        Refusal: the user may not, or the existing one is different.
    """
    check_exchange_type(kind)
    caller.vhost.check_not_default(name)
    check(caller, CONFIGURE, EXCHANGE, name)
    return make_exchange(caller, name, kind, options)


def make_exchange(
    caller: Caller,
    name: str,
    kind: str,
    options: ExchangeOptions,
    more_checks: Callable[[], None] = _nothing,
) -> Exchange:
    """Make an exchange that the user may configure, or check that the existing one is the same.

    Args:
        caller: the user and vhost.
        name: of the exchange.
        kind: its type.
        options: the flags and arguments of the declaration.
        more_checks: further checks of a version, before a new exchange is created.
    """
    vhost = caller.vhost
    if name not in vhost.exchanges:
        facts = {"name": name, "auto_delete": options.auto_delete}
        with audited(caller, "exchange.created", facts):
            check_other_exchange(caller, EXCHANGE, name, options.arguments, ALTERNATE)
            more_checks()
    vhost.declare_exchange(
        name,
        kind,
        durable=options.durable,
        auto_delete=options.auto_delete,
        internal=options.internal,
        arguments=options.arguments,
    )
    return vhost.exchange(name)
