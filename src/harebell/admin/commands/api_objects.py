"""Queues, exchanges, bindings, and connections of a user, as the HTTP API names them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypedDict
from urllib.parse import quote, quote_plus, unquote_plus

from harebell.admin.catalog import API_OBJECTS
from harebell.admin.command import MANAGEMENT, Row
from harebell.admin.commands.connections import Reason, checked_reason, visible_connections
from harebell.admin.context import AdminContext, CommandRefused, missing
from harebell.admin.rows.connections import ConnectionRow, connection_row
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.model.binding import Binding
    from harebell.model.exchange import Exchange
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

NO_ARGUMENTS: dict[str, Any] = {}
_QUEUE = "q"
_EXCHANGE = "e"
_KINDS = {_QUEUE: "queue", _EXCHANGE: "exchange"}
_HASH_BYTES = 6
_NO_KEY = "~"
_DEFAULT_EXCHANGE = "amq.default"
_ACTIONS = ("sync", "cancel_sync")


# --- queues and exchanges -------------------------------------------------------------------------


def _queue(context: AdminContext, vhost: str, name: str) -> tuple[VHost, Queue]:
    where = context.vhost(vhost)
    found = where.queues.get(name)
    if found is None:
        raise missing(f"no queue '{name}' in vhost '{where.name}'")
    return where, found


def _exchange(context: AdminContext, vhost: str, name: str) -> tuple[VHost, Exchange]:
    where = context.vhost(vhost)
    found = where.exchanges.get(name)
    if found is None:
        raise missing(f"no exchange '{name or _DEFAULT_EXCHANGE}' in vhost '{where.name}'")
    return where, found


@API_OBJECTS.command("POST /api/queues/{vhost}/{name}/actions", tag=MANAGEMENT)
def queue_action(context: AdminContext, vhost: str, name: str, action: str) -> Row:
    """Synchronise mirrors of a queue: there is one broker, so nothing has to be done."""
    _queue(context, vhost, name)
    if action not in _ACTIONS:
        raise CommandRefused(f"the action '{action}' is unknown: it is one of {_ACTIONS}")
    return {}


# --- bindings -------------------------------------------------------------------------------------


class ApiBindingRow(TypedDict):
    """A binding, with the names of the HTTP API."""

    source: str
    vhost: str
    destination: str
    destination_type: str
    routing_key: str
    arguments: dict[str, Any]
    properties_key: str


def properties_key(routing_key: str, arguments: Any) -> str:
    """Return the name of a binding among those with the same ends.

    It is "~" for an empty key without arguments, the quoted key without arguments, else both with a
    hash of the arguments, which is the same after a restart.
    """
    import hashlib
    from base64 import urlsafe_b64encode

    from harebell.model.binding import frozen

    key = quote_plus(routing_key, safe="").replace(_NO_KEY, "%7E")
    if not arguments:
        return key or _NO_KEY
    digest = hashlib.sha256(repr(frozen(arguments)).encode()).digest()
    return f"{key}{_NO_KEY}{urlsafe_b64encode(digest[:_HASH_BYTES]).decode()}"


def _row(
    vhost: str, source: str, destination: str, kind: str, key: str, arguments: Any
) -> ApiBindingRow:
    from harebell.admin.rows.common import as_json

    return {
        "source": source,
        "vhost": vhost,
        "destination": destination,
        "destination_type": kind,
        "routing_key": key,
        "arguments": as_json(dict(arguments)),
        "properties_key": properties_key(key, arguments),
    }


def _of_binding(vhost: VHost, binding: Binding) -> ApiBindingRow:
    from harebell.model.queue.contract import Queue

    end = binding.destination
    kind = "queue" if isinstance(end, Queue) else "exchange"
    return _row(
        *(vhost.name, binding.source.name, end.name, kind),
        *(binding.routing_key, binding.arguments),
    )


def _implicit(vhost: VHost, queue: str) -> ApiBindingRow:
    """Return the binding of a queue to the default exchange."""
    return _row(vhost.name, "", queue, "queue", queue, NO_ARGUMENTS)


def _all(vhosts: list[VHost]) -> Iterator[ApiBindingRow]:
    for vhost in vhosts:
        for name in sorted(vhost.queues):
            yield _implicit(vhost, name)
        for binding in vhost.bindings():
            yield _of_binding(vhost, binding)


@API_OBJECTS.command("GET /api/bindings", tag=MANAGEMENT)
def bindings(context: AdminContext) -> Slices[list[ApiBindingRow]]:
    """Return all bindings by vhost."""
    return gathered(_all(context.vhosts(None)))


@API_OBJECTS.command("GET /api/bindings/{vhost}", tag=MANAGEMENT)
def bindings_of_vhost(context: AdminContext, vhost: str) -> Slices[list[ApiBindingRow]]:
    """Return the bindings of a vhost."""
    return gathered(_all([context.vhost(vhost)]))


def _to(vhost: VHost, end: Queue | Exchange, *, is_queue: bool) -> Iterator[ApiBindingRow]:
    if is_queue:
        yield _implicit(vhost, end.name)
    for binding in list((end.bound or {}).values()):
        yield _of_binding(vhost, binding)


@API_OBJECTS.command("GET /api/queues/{vhost}/{name}/bindings", tag=MANAGEMENT)
def bindings_of_queue(context: AdminContext, vhost: str, name: str) -> Slices[list[ApiBindingRow]]:
    """Return the bindings that lead to a queue."""
    where, queue = _queue(context, vhost, name)
    return gathered(_to(where, queue, is_queue=True))


@API_OBJECTS.command("GET /api/exchanges/{vhost}/{name}/bindings/destination", tag=MANAGEMENT)
def bindings_to_exchange(
    context: AdminContext, vhost: str, name: str
) -> Slices[list[ApiBindingRow]]:
    """Return the bindings that lead to an exchange."""
    where, exchange = _exchange(context, vhost, name)
    return gathered(_to(where, exchange, is_queue=False))


@API_OBJECTS.command("GET /api/exchanges/{vhost}/{name}/bindings/source", tag=MANAGEMENT)
def bindings_from_exchange(
    context: AdminContext, vhost: str, name: str
) -> Slices[list[ApiBindingRow]]:
    """Return the bindings that lead from an exchange."""
    where, exchange = _exchange(context, vhost, name)
    if exchange.default:
        return gathered(_implicit(where, queue) for queue in sorted(where.queues))
    return gathered(_of_binding(where, each) for each in list(exchange.bindings.values()))


def _ends(
    context: AdminContext, vhost: str, source: str, kind: str, destination: str
) -> tuple[VHost, Exchange, Queue | Exchange]:
    """Find the ends of a binding.

    Raises:
        CommandRefused: NOT_FOUND.
    """
    where, exchange = _exchange(context, vhost, source)
    if kind not in _KINDS:
        raise missing(f"a binding leads to q (a queue) or e (an exchange), not to '{kind}'")
    find = _queue if kind == _QUEUE else _exchange
    return where, exchange, find(context, vhost, destination)[1]


def _between(
    context: AdminContext, vhost: str, source: str, kind: str, destination: str
) -> list[ApiBindingRow]:
    where, exchange, end = _ends(context, vhost, source, kind, destination)
    if exchange.default:
        return [_implicit(where, destination)] if kind == _QUEUE else []
    found = [each for each in (end.bound or {}).values() if each.source is exchange]
    return [_of_binding(where, each) for each in found]


def _named(
    context: AdminContext, vhost: str, source: str, kind: str, destination: str, props: str
) -> ApiBindingRow:
    rows = _between(context, vhost, source, kind, destination)
    for row in rows:
        if row["properties_key"] == props:
            return row
    for row in rows:
        # Some clients encode a name once, and RabbitMQ decodes it once more than they do.
        if not row["arguments"] and row["routing_key"] == unquote_plus(props):
            return row
    raise missing(f"no binding '{props}' from '{source}' to '{destination}' in vhost '{vhost}'")


_PATH = "/api/bindings/{vhost}/e/{source}/{kind}/{destination}"


@API_OBJECTS.command(f"GET {_PATH}", tag=MANAGEMENT)
def bindings_between(
    context: AdminContext, vhost: str, source: str, kind: str, destination: str
) -> list[ApiBindingRow]:
    """Return the bindings from an exchange to a queue or an exchange."""
    return _between(context, vhost, source, kind, destination)


@API_OBJECTS.command(f"GET {_PATH}/{{props}}", tag=MANAGEMENT)
def binding(
    context: AdminContext, vhost: str, source: str, kind: str, destination: str, props: str
) -> ApiBindingRow:
    """Return a binding by the name that `properties_key` gives it."""
    return _named(context, vhost, source, kind, destination, props)


def _check(context: AdminContext, vhost: VHost, source: str, kind: str, end: str, key: str) -> None:
    if context.actor is not None:
        from harebell.front.operations.bind import check_binding
        from harebell.front.operations.caller import Caller

        caller = Caller(vhost, context.actor, None, context.log)
        check_binding(caller, _KINDS[kind], end, source, key)


@API_OBJECTS.command(f"POST {_PATH}", tag=MANAGEMENT, status=201)
def bind(
    context: AdminContext,
    vhost: str,
    source: str,
    kind: str,
    destination: str,
    routing_key: str = "",
    arguments: dict[str, Any] = NO_ARGUMENTS,
) -> Row:
    """Bind a queue or an exchange to an exchange; the header `location` names the binding."""
    where, exchange, end = _ends(context, vhost, source, kind, destination)
    _check(context, where, exchange.name, kind, end.name, routing_key)
    where.bind(exchange.name, end, routing_key, arguments)
    props = quote(properties_key(routing_key, arguments), safe="~")
    return {"location": f"{quote(destination or _DEFAULT_EXCHANGE, safe='')}/{props}"}


@API_OBJECTS.command(f"DELETE {_PATH}/{{props}}", tag=MANAGEMENT)
def unbind(
    context: AdminContext, vhost: str, source: str, kind: str, destination: str, props: str
) -> Row:
    """Delete a binding by the name that `properties_key` gives it."""
    where, exchange, end = _ends(context, vhost, source, kind, destination)
    row = _named(context, vhost, source, kind, destination, props)
    _check(context, where, exchange.name, kind, end.name, row["routing_key"])
    for each in (end.bound or {}).values():
        if each.source is exchange and _of_binding(where, each) == row:
            where.unbind(exchange.name, end, each.routing_key, each.arguments)
            return {}
    raise CommandRefused("the default exchange has no bindings that can be deleted")


# --- connections of a user ------------------------------------------------------------------------


@API_OBJECTS.command("GET /api/connections/username/{user}", tag=MANAGEMENT)
def list_of_user(context: AdminContext, user: str) -> Slices[list[ConnectionRow]]:
    """List the connections of a user, the oldest first."""
    context.user(user)
    found = [each for each in visible_connections(context, None) if each.user.name == user]
    return gathered(connection_row(context, each) for each in found)


@API_OBJECTS.command("DELETE /api/connections/username/{user}", tag=MANAGEMENT)
def close_of_user(context: AdminContext, user: str, reason: Reason = None) -> Row:
    """Close all connections of a user with 320 CONNECTION_FORCED."""
    text = checked_reason(reason)
    context.user(user)
    closed = context.disconnect(
        text, lambda each: each.user.name == user and context.may_see_work_of(user)
    )
    context.log("info", f"{closed} connections of user '{user}' were closed: {text}")
    return {"user": user, "connections_closed": closed}
