"""Commands for exchanges and bindings: `harebell exchanges`, `harebell bindings`.

The columns have the names of rabbitmqctl.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from harebell.admin.context import AdminContext, Command, Fields, Refused, checked_name
from harebell.base.limits import NAME_BYTES
from harebell.base.slices import Slices, gathered
from harebell.model.exchange import Exchange
from harebell.model.exchange.delayed import DelayedExchange
from harebell.model.queue.contract import Queue
from harebell.model.vhost import VHost


class Filter(Fields):
    """Of one vhost, or of all."""

    vhost: str | None = None


class Declared(Fields):
    """Which exchange, where, and what it shall be like."""

    name: str
    vhost: str
    type: str = "direct"
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: dict[str, Any] = {}


class Bound(Fields):
    """A binding."""

    source: str
    destination: str
    vhost: str
    to_exchange: bool = False
    routing_key: str = ""
    arguments: dict[str, Any] = {}


class Deleted(Fields):
    """Which exchange, where, and when not to delete it."""

    name: str
    vhost: str
    if_unused: bool = False


def _vhosts(context: AdminContext, asked: Filter) -> list[VHost]:
    if asked.vhost is not None:
        return [context.vhost(asked.vhost)]
    return [vhost for _, vhost in sorted(context.broker.vhosts.items())]


def facts(vhost: VHost, exchange: Exchange) -> dict[str, Any]:
    """What there is to say about an exchange."""
    policy = vhost.policies.policy_of(exchange)
    return {
        "vhost": vhost.name,
        "name": exchange.name,
        "type": exchange.KIND,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": dict(exchange.arguments),
        "policy": "" if policy is None else policy.name,
        "messages_delayed": exchange.delayed if isinstance(exchange, DelayedExchange) else 0,
    }


def list_exchanges(context: AdminContext, asked: Filter) -> Slices[list[dict[str, Any]]]:
    """Exchanges by vhost and name; the default exchange has the name ""."""
    return gathered(
        facts(vhost, exchange)
        for vhost in _vhosts(context, asked)
        for _, exchange in sorted(vhost.exchanges.items())
    )


def declare(context: AdminContext, asked: Declared) -> dict[str, Any]:
    """An exchange, unless it is there and like that already."""
    vhost = context.vhost(asked.vhost)
    name = checked_name(asked.name, "exchange", NAME_BYTES)
    made = name not in vhost.exchanges
    exchange = vhost.declare_exchange(
        name,
        asked.type,
        durable=asked.durable,
        auto_delete=asked.auto_delete,
        internal=asked.internal,
        arguments=asked.arguments,
    )
    if made:
        context.log("info", f"exchange '{name}' in vhost '{vhost.name}' was declared")
    return facts(vhost, exchange) | {"made": made}


def delete(context: AdminContext, asked: Deleted) -> dict[str, Any]:
    """Away with an exchange and its bindings."""
    vhost = context.vhost(asked.vhost)
    if asked.name not in vhost.exchanges:
        raise Refused(
            f"no exchange '{asked.name}' in vhost '{vhost.name}': `harebell exchanges list` "
            "shows all"
        )
    vhost.delete_exchange(asked.name, if_unused=asked.if_unused)
    context.log("info", f"exchange '{asked.name}' in vhost '{vhost.name}' was deleted")
    return {"vhost": vhost.name, "name": asked.name}


def _binding(
    vhost: VHost, source: str, destination: Queue | Exchange, key: str, arguments: Any
) -> dict[str, Any]:
    return {
        "vhost": vhost.name,
        "source_name": source,
        "source_kind": "exchange",
        "destination_name": destination.name,
        "destination_kind": "queue" if isinstance(destination, Queue) else "exchange",
        "routing_key": key,
        "arguments": dict(arguments),
    }


def list_bindings(context: AdminContext, asked: Filter) -> Slices[list[dict[str, Any]]]:
    """Bindings by vhost: those of the default exchange to every queue first."""
    return gathered(_bindings(_vhosts(context, asked)))


def _bindings(vhosts: Iterable[VHost]) -> Iterator[dict[str, Any]]:
    for vhost in vhosts:
        for name, queue in sorted(vhost.queues.items()):
            yield _binding(vhost, "", queue, name, {})
        for each in vhost.bindings():
            yield _binding(
                vhost, each.source.name, each.destination, each.routing_key, each.arguments
            )


def _ends(context: AdminContext, asked: Bound) -> tuple[VHost, Queue | Exchange]:
    """The vhost and the destination of a binding, whose source is there, too.

    Raises:
        Refused: one of them is missing.
    """
    vhost = context.vhost(asked.vhost)
    kind = "exchange" if asked.to_exchange else "queue"
    there: Mapping[str, Queue | Exchange] = vhost.exchanges if asked.to_exchange else vhost.queues
    for what, name, known in (
        ("exchange", asked.source, vhost.exchanges),
        (kind, asked.destination, there),
    ):
        if name not in known:
            raise Refused(
                f"no {what} '{name}' in vhost '{vhost.name}': `harebell {what}s list` shows all, "
                f"and `harebell {what}s declare` makes one"
            )
    return vhost, there[asked.destination]


def bind(context: AdminContext, asked: Bound) -> dict[str, Any]:
    """A binding, unless there is one like that already."""
    vhost, destination = _ends(context, asked)
    vhost.bind(asked.source, destination, asked.routing_key, asked.arguments)
    return _binding(vhost, asked.source, destination, asked.routing_key, asked.arguments)


def unbind(context: AdminContext, asked: Bound) -> dict[str, Any]:
    """Away with a binding."""
    vhost, destination = _ends(context, asked)
    if not vhost.unbind(asked.source, destination, asked.routing_key, asked.arguments):
        raise Refused(
            f"no binding from exchange '{asked.source}' to '{destination.name}' with the key "
            f"'{asked.routing_key}' and these arguments in vhost '{vhost.name}': "
            "`harebell bindings list` shows all"
        )
    return _binding(vhost, asked.source, destination, asked.routing_key, asked.arguments)


COMMANDS = {
    "exchanges.list": Command(Filter, list_exchanges),
    "exchanges.declare": Command(Declared, declare),
    "exchanges.delete": Command(Deleted, delete),
    "bindings.list": Command(Filter, list_bindings),
    "bindings.add": Command(Bound, bind),
    "bindings.delete": Command(Bound, unbind),
}
