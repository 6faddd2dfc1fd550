"""Commands for bindings. On the command line the columns have the names of rabbitmqctl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, quote_plus, unquote_plus

from harebell.admin.arguments import NO_ARGUMENTS, InVhost, OnlyVhost, Table
from harebell.admin.catalog import BINDINGS
from harebell.admin.command import MANAGEMENT, Argument, Row
from harebell.admin.commands.exchanges import DEFAULT_EXCHANGE, find_exchange
from harebell.admin.commands.queues import find_queue
from harebell.admin.context import AdminContext, CommandRefused, checked_table, missing
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.model.binding import Binding
    from harebell.model.exchange import Exchange
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

_QUEUE = "q"
_EXCHANGE = "e"
_KINDS = {_QUEUE: "queue", _EXCHANGE: "exchange"}
_HASH_BYTES = 6
_NO_KEY = "~"
_COLUMNS = (
    *("vhost", "source_name", "source_kind", "destination_name", "destination_kind", "routing_key"),
    "arguments",
)
"""The columns of a binding."""


def _binding_row(
    vhost: VHost, source: str, destination: Queue | Exchange, key: str, arguments: Any
) -> Row:
    from harebell.model.queue.contract import Queue
    from harebell.wire.json_values import shown_table

    return {
        "vhost": vhost.name,
        "source_name": source,
        "source_kind": "exchange",
        "destination_name": destination.name,
        "destination_kind": "queue" if isinstance(destination, Queue) else "exchange",
        "routing_key": key,
        "arguments": shown_table(arguments),
    }


@BINDINGS.listing(
    "bindings",
    tag=MANAGEMENT,
    row=_COLUMNS,
    shown=("vhost", "source_name", "destination_kind", "destination_name", "routing_key"),
)
def list_bindings(context: AdminContext, vhost: OnlyVhost = None) -> Slices[list[Row]]:
    """List bindings by vhost: those of the default exchange to every queue first."""
    return gathered(_bindings(context.vhosts(vhost)))


def _bindings(vhosts: Iterable[VHost]) -> Iterator[Row]:
    for vhost in vhosts:
        for name, queue in sorted(vhost.queues.items()):
            yield _binding_row(vhost, "", queue, name, {})
        for each in vhost.bindings():
            yield _binding_row(
                vhost, each.source.name, each.destination, each.routing_key, each.arguments
            )


def _ends(
    context: AdminContext, vhost: str, source: str, destination: str, to_exchange: bool
) -> tuple[VHost, Queue | Exchange, str]:
    """Find the vhost and the destination of a binding, and say which kind that is.

    Raises:
        CommandRefused: the source or the destination does not exist.
    """
    where = context.vhost(vhost)
    kind = "exchange" if to_exchange else "queue"
    destinations: Mapping[str, Queue | Exchange] = where.exchanges if to_exchange else where.queues
    for what, name, resources in (
        ("exchange", source, where.exchanges),
        (kind, destination, destinations),
    ):
        if name not in resources:
            raise CommandRefused(
                f"no {what} '{name}' in vhost '{where.name}': `harebell {what}s list` shows all, "
                f"and `harebell {what}s declare` makes one"
            )
    return where, destinations[destination], kind


def _sentence(outcome: Mapping[str, Any], done: str) -> str:
    key = f" with the key '{outcome['routing_key']}'" if outcome["routing_key"] else ""
    return (
        f"{outcome['destination_kind']} '{outcome['destination_name']}' in vhost "
        f"'{outcome['vhost']}' is {done} to exchange '{outcome['source_name']}'{key}"
    )


Key = Annotated[str, Argument("Its routing key.", "KEY", short="r")]
ToExchange = Annotated[bool, Argument("DESTINATION is an exchange.")]


@BINDINGS.command(
    tag=MANAGEMENT,
    done=lambda outcome: _sentence(outcome, "bound"),
)
def add(
    context: AdminContext,
    source: str,
    destination: str,
    vhost: InVhost = "/",
    routing_key: Key = "",
    to_exchange: ToExchange = False,
    arguments: Table = NO_ARGUMENTS,
) -> Row:
    """Bind the queue DESTINATION to the exchange SOURCE."""
    from harebell.front.operations import bind as operations

    where, end, kind = _ends(context, vhost, source, destination, to_exchange)
    request = operations.BindingRequest(kind, destination, source, routing_key, _checked(arguments))
    operations.bind(context.caller(where), request)
    return _binding_row(where, source, end, routing_key, request.arguments)


@BINDINGS.command(tag=MANAGEMENT, done=lambda outcome: _sentence(outcome, "no longer bound"))
def delete(
    context: AdminContext,
    source: str,
    destination: str,
    vhost: InVhost = "/",
    routing_key: Key = "",
    to_exchange: ToExchange = False,
    arguments: Table = NO_ARGUMENTS,
) -> Row:
    """Delete a binding of the queue DESTINATION to the exchange SOURCE."""
    from harebell.front.operations import bind as operations

    where, end, kind = _ends(context, vhost, source, destination, to_exchange)
    request = operations.BindingRequest(kind, destination, source, routing_key, _checked(arguments))
    if not operations.unbind(context.caller(where), request):
        raise CommandRefused(
            f"no binding from exchange '{source}' to '{end.name}' with the key "
            f"'{routing_key}' and these arguments in vhost '{where.name}': "
            "`harebell bindings list` shows all"
        )
    return _binding_row(where, source, end, routing_key, request.arguments)


def _checked(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return checked_table(arguments, "the arguments of the binding")


# --- over HTTP ------------------------------------------------------------------------------------


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


def _api_row(vhost: str, source: str, destination: str, kind: str, key: str, arguments: Any) -> Row:
    from harebell.wire.json_values import shown_table

    return {
        "source": source,
        "vhost": vhost,
        "destination": destination,
        "destination_type": kind,
        "routing_key": key,
        "arguments": shown_table(arguments),
        "properties_key": properties_key(key, arguments),
    }


def _api_row_of(vhost: VHost, binding: Binding) -> Row:
    from harebell.model.queue.contract import Queue

    end = binding.destination
    kind = "queue" if isinstance(end, Queue) else "exchange"
    return _api_row(
        *(vhost.name, binding.source.name, end.name, kind),
        *(binding.routing_key, binding.arguments),
    )


def _default_binding(vhost: VHost, queue: str) -> Row:
    """Return the binding of a queue to the default exchange."""
    return _api_row(vhost.name, "", queue, "queue", queue, NO_ARGUMENTS)


def _api_rows(vhosts: list[VHost]) -> Iterator[Row]:
    for vhost in vhosts:
        for name in sorted(vhost.queues):
            yield _default_binding(vhost, name)
        for binding in vhost.bindings():
            yield _api_row_of(vhost, binding)


@BINDINGS.over_http(
    "GET /api/bindings",
    "GET /api/bindings/{vhost}: Return the bindings of a vhost.",
    tag=MANAGEMENT,
)
def all_bindings(context: AdminContext, vhost: str | None = None) -> Slices[list[Row]]:
    """Return all bindings by vhost."""
    return gathered(_api_rows(context.vhosts(vhost)))


def _leading_to(vhost: VHost, end: Queue | Exchange, *, is_queue: bool) -> Iterator[Row]:
    if is_queue:
        yield _default_binding(vhost, end.name)
    for binding in list((end.bound or {}).values()):
        yield _api_row_of(vhost, binding)


@BINDINGS.over_http("GET /api/queues/{vhost}/{name}/bindings", tag=MANAGEMENT)
def bindings_of_queue(context: AdminContext, vhost: str, name: str) -> Slices[list[Row]]:
    """Return the bindings that lead to a queue."""
    where, queue = find_queue(context, vhost, name)
    return gathered(_leading_to(where, queue, is_queue=True))


@BINDINGS.over_http("GET /api/exchanges/{vhost}/{name}/bindings/destination", tag=MANAGEMENT)
def bindings_to_exchange(context: AdminContext, vhost: str, name: str) -> Slices[list[Row]]:
    """Return the bindings that lead to an exchange."""
    where, exchange = find_exchange(context, vhost, name)
    return gathered(_leading_to(where, exchange, is_queue=False))


@BINDINGS.over_http("GET /api/exchanges/{vhost}/{name}/bindings/source", tag=MANAGEMENT)
def bindings_from_exchange(context: AdminContext, vhost: str, name: str) -> Slices[list[Row]]:
    """Return the bindings that lead from an exchange."""
    where, exchange = find_exchange(context, vhost, name)
    if exchange.default:
        return gathered(_default_binding(where, queue) for queue in sorted(where.queues))
    return gathered(_api_row_of(where, each) for each in list(exchange.bindings.values()))


_PATH = "/api/bindings/{vhost}/e/{source}/{kind}/{destination}"


def _kind_named(kind: str) -> str:
    """Return "queue" or "exchange" for the letter of a path.

    Raises:
        CommandRefused: NOT_FOUND.
    """
    if kind not in _KINDS:
        raise missing(f"a binding leads to q (a queue) or e (an exchange), not to '{kind}'")
    return _KINDS[kind]


def _ends_by_kind(
    context: AdminContext, vhost: str, source: str, kind: str, destination: str
) -> tuple[VHost, Exchange, Queue | Exchange]:
    """Find the ends of a binding.

    Raises:
        CommandRefused: NOT_FOUND.
    """
    where, exchange = find_exchange(context, vhost, source)
    _kind_named(kind)
    find = find_queue if kind == _QUEUE else find_exchange
    return where, exchange, find(context, vhost, destination)[1]


@BINDINGS.over_http(f"GET {_PATH}", tag=MANAGEMENT)
def bindings_between(
    context: AdminContext, vhost: str, source: str, kind: str, destination: str
) -> list[Row]:
    """Return the bindings from an exchange to a queue or an exchange."""
    where, exchange, end = _ends_by_kind(context, vhost, source, kind, destination)
    if exchange.default:
        return [_default_binding(where, destination)] if kind == _QUEUE else []
    bindings = [each for each in (end.bound or {}).values() if each.source is exchange]
    return [_api_row_of(where, each) for each in bindings]


@BINDINGS.over_http(f"GET {_PATH}/{{props}}", tag=MANAGEMENT)
def binding(
    context: AdminContext, vhost: str, source: str, kind: str, destination: str, props: str
) -> Row:
    """Return a binding by the name that `properties_key` gives it."""
    rows = bindings_between(context, vhost, source, kind, destination)
    for row in rows:
        if row["properties_key"] == props:
            return row
    for row in rows:
        # Some clients encode a name once, and RabbitMQ decodes it once more than they do.
        if not row["arguments"] and row["routing_key"] == unquote_plus(props):
            return row
    raise missing(f"no binding '{props}' from '{source}' to '{destination}' in vhost '{vhost}'")


@BINDINGS.over_http(f"POST {_PATH}", tag=MANAGEMENT, status=201)
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
    from harebell.front.operations import bind as operations

    where = context.vhost(vhost)
    request = operations.BindingRequest(
        _kind_named(kind), destination, source, routing_key, _checked(arguments)
    )
    operations.bind(context.caller(where), request)
    props = quote(properties_key(routing_key, request.arguments), safe="~")
    return {"location": f"{quote(destination or DEFAULT_EXCHANGE, safe='')}/{props}"}


@BINDINGS.over_http(f"DELETE {_PATH}/{{props}}", tag=MANAGEMENT)
def unbind(
    context: AdminContext, vhost: str, source: str, kind: str, destination: str, props: str
) -> Row:
    """Delete a binding by the name that `properties_key` gives it."""
    from harebell.front.operations import bind as operations

    where = context.vhost(vhost)
    caller = context.caller(where)
    # Before anything is looked up: only users with permissions learn what exists.
    operations.check_ends(caller, _kind_named(kind), destination, source)
    row = binding(context, vhost, source, kind, destination, props)
    _, exchange, end = _ends_by_kind(context, vhost, source, kind, destination)
    for each in (end.bound or {}).values():
        if each.source is exchange and _api_row_of(where, each) == row:
            request = operations.BindingRequest(
                _kind_named(kind), destination, source, each.routing_key, each.arguments
            )
            operations.unbind(caller, request)
            return {}
    raise CommandRefused("the default exchange has no bindings that can be deleted")
