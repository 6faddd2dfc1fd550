"""Bind queues and exchanges to exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from msgspec import Struct, field

from harebell.auth.permissions import READ, WRITE
from harebell.front.common.channel_like import Principal
from harebell.front.common.permission import EXCHANGE, QUEUE, audited, check, check_topic
from harebell.front.operations.caller import Caller
from harebell.model.binding import Binding
from harebell.model.exchange import Exchange
from harebell.model.queue.contract import Queue

BOUND, UNBOUND = "binding.created", "binding.deleted"
"""The routing keys of the events of bindings."""


class BindingRequest(Struct, frozen=True):
    """A binding that is to be made or removed.

    Args:
        kind: of the destination, QUEUE or EXCHANGE.
        destination: its name.
        source: the name of the exchange.
        key: the binding key.
        arguments: as in queue.bind.
    """

    kind: str
    destination: str
    source: str
    key: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)


def bind(caller: Caller, request: BindingRequest) -> Binding:
    """Bind a queue or an exchange to an exchange; an equal binding is no error.

    Raises:
        Refusal: the user may not, an end is missing or exclusive to another owner, or the type of
            the exchange cannot use the binding.
    """
    check_binding(caller, request.kind, request.destination, request.source, request.key)
    vhost = caller.vhost
    # RabbitMQ's order: a missing source is reported before a missing or exclusive destination.
    vhost.exchange(request.source)
    end: Queue | Exchange
    if request.kind == QUEUE:
        end = vhost.queue(request.destination, caller.owner)
    else:
        end = vhost.exchange(request.destination)
    return vhost.bind(request.source, end, request.key, request.arguments)


def unbind(caller: Caller, request: BindingRequest) -> bool:
    """Remove a binding; False if there was none.

    Raises:
        Refusal: the user may not, or the queue is exclusive to another owner.
    """
    ends = (request.kind, request.destination, request.source, request.key)
    check_binding(caller, *ends, event=UNBOUND)
    vhost = caller.vhost
    exchange = vhost.exchanges.get(request.source)
    found: Mapping[str, Queue | Exchange]
    found = vhost.queues if request.kind == QUEUE else vhost.exchanges
    end = found.get(request.destination)
    # RabbitMQ accepts an unbind of what does not exist, unlike the text of the specification.
    if exchange is None or end is None:
        return False
    if Binding(exchange, end, request.key, request.arguments) not in exchange.bindings:
        return False
    if request.kind == QUEUE:
        # An exclusive queue of others is refused only if there is a binding to remove.
        vhost.queue(request.destination, caller.owner)
    return vhost.unbind(request.source, end, request.key, request.arguments)


def check_ends(caller: Principal, kind: str, destination: str, source: str) -> None:
    """Refuse a binding that the user may not make or undo.

    Args:
        caller: the user and vhost.
        kind: of the destination, QUEUE or EXCHANGE.
        destination: its name; needs write.
        source: the exchange; needs read.

    Raises:
        Refusal: a permission is missing, or one of the exchanges is the default exchange.
    """
    # RabbitMQ's order, which decides what a user without permissions learns.
    check(caller, WRITE, kind, destination)
    if kind == EXCHANGE:
        caller.vhost.check_not_default(destination)
    caller.vhost.check_not_default(source)
    check(caller, READ, EXCHANGE, source)


def check_binding(
    caller: Principal, kind: str, destination: str, source: str, key: str, *, event: str = BOUND
) -> None:
    """Refuse a binding that the user may not make or undo, its key included.

    The audit trail takes the refusal of an act with that event; "" for none.
    """
    with audited_binding(caller, kind, destination, source, key, event):
        check_ends(caller, kind, destination, source)
        check_topic(caller, READ, source, key)


def audited_binding(
    caller: Principal, kind: str, destination: str, source: str, key: str, event: str
) -> AbstractContextManager[None]:
    """Have the audit trail take it if the user may not do what a block checks for a binding."""
    facts = {"source_name": source, "destination_name": destination, "routing_key": key}
    return audited(caller, event, {**facts, "destination_kind": kind})
