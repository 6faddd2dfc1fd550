"""Commands for exchanges and bindings. The columns have the names of rabbitmqctl."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from harebell.admin.catalog import BINDINGS, EXCHANGES
from harebell.admin.command import MANAGEMENT, Argument, Form, Row
from harebell.admin.context import AdminContext, CommandRefused, checked_name, missing
from harebell.admin.ranges import Age, Increment, range_of
from harebell.admin.rows.details import exchange_incoming, exchange_outgoing
from harebell.admin.rows.exchanges import ExchangeRow, exchange_row
from harebell.base.limits import NAME_BYTES
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.admin.statistics import Range
    from harebell.model.exchange import Exchange
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

InVhost = Annotated[str, Argument("The vhost it is in.", "NAME")]
OnlyVhost = Annotated[str | None, Argument("Only those of this vhost.", "NAME")]
Table = Annotated[
    dict[str, Any],
    Argument("An argument: name=text or name:=JSON. May be repeated.", form=Form.TABLE),
]
NO_ARGUMENTS: dict[str, Any] = {}

# --- exchanges ------------------------------------------------------------------------------------


@EXCHANGES.listing(
    "exchanges",
    "GET /api/exchanges",
    "GET /api/exchanges/{vhost}",
    tag=MANAGEMENT,
    row=ExchangeRow,
    shown=("vhost", "name", "type", "durable", "policy", "messages_delayed"),
)
def list_exchanges(context: AdminContext, vhost: OnlyVhost = None) -> Slices[list[ExchangeRow]]:
    """List exchanges by vhost and name; the default exchange has the name ""."""
    return gathered(
        exchange_row(context, each, exchange)
        for each in context.vhosts(vhost)
        for _, exchange in sorted(each.exchanges.items())
    )


@EXCHANGES.command("GET /api/exchanges/{vhost}/{name}", tag=MANAGEMENT)
def show(
    context: AdminContext,
    name: str,
    vhost: InVhost = "/",
    msg_rates_age: Age = None,
    msg_rates_incr: Increment = None,
) -> Slices[Row]:
    """Show an exchange, and samples of its counters; the default exchange has the name ""."""
    wanted = range_of(msg_rates_age, msg_rates_incr, "msg_rates")
    where = context.vhost(vhost)
    exchange = where.exchanges.get(name)
    if exchange is None:
        raise _no_exchange(where, name)
    return _shown(context, where, exchange, wanted)


def _shown(
    context: AdminContext, where: VHost, exchange: Exchange, wanted: Range | None
) -> Slices[Row]:
    incoming = yield from exchange_incoming(context, where, exchange, wanted)
    outgoing = yield from exchange_outgoing(context, where, exchange, wanted)
    return {
        **exchange_row(context, where, exchange, wanted),
        "incoming": incoming,
        "outgoing": outgoing,
    }


def _no_exchange(where: VHost, name: str) -> CommandRefused:
    return missing(
        f"no exchange '{name}' in vhost '{where.name}': `harebell exchanges list` shows all"
    )


def _declared(known: Mapping[str, Any]) -> str:
    done = "was declared" if known["made"] else "is there already, and like that"
    return f"exchange '{known['name']}' in vhost '{known['vhost']}' {done}"


@EXCHANGES.command("PUT /api/exchanges/{vhost}/{name}", tag=MANAGEMENT, done=_declared)
def declare(
    context: AdminContext,
    name: str,
    vhost: InVhost = "/",
    type_: Annotated[
        str,
        Argument(
            "Its type: direct, fanout, topic, headers or one of docs/protocols/compatibility.md.",
            "NAME",
        ),
    ] = "direct",
    durable: Annotated[
        bool,
        Argument(
            "Whether it survives a restart.  [default: durable]", off="transient", over_http=False
        ),
    ] = True,
    auto_delete: Annotated[bool, Argument("It goes with its last binding.")] = False,
    internal: Annotated[bool, Argument("Only other exchanges may send to it.")] = False,
    arguments: Table = NO_ARGUMENTS,
) -> Row:
    """Make an exchange, or see that there is one like that."""
    where = context.vhost(vhost)
    checked_name(name, "exchange", NAME_BYTES)
    context.check_permission(where, "configure", "exchange", name)
    made = name not in where.exchanges
    exchange = where.declare_exchange(
        name,
        type_,
        durable=durable,
        auto_delete=auto_delete,
        internal=internal,
        arguments=arguments,
    )
    if made:
        context.log("info", f"exchange '{name}' in vhost '{where.name}' was declared")
    return {**exchange_row(context, where, exchange), "made": made}


@EXCHANGES.command(
    "DELETE /api/exchanges/{vhost}/{name}",
    tag=MANAGEMENT,
    done="exchange '{name}' in vhost '{vhost}' was deleted",
)
def delete(
    context: AdminContext,
    name: str,
    vhost: InVhost = "/",
    if_unused: Annotated[bool, Argument("Only if nothing is bound to it.")] = False,
) -> Row:
    """Delete an exchange and its bindings."""
    where = context.vhost(vhost)
    context.check_permission(where, "configure", "exchange", name)
    if name not in where.exchanges:
        raise _no_exchange(where, name)
    where.delete_exchange(name, if_unused=if_unused)
    context.log("info", f"exchange '{name}' in vhost '{where.name}' was deleted")
    return {"vhost": where.name, "name": name}


# --- bindings -------------------------------------------------------------------------------------


class BindingRow(TypedDict):
    """A binding."""

    vhost: str
    source_name: str
    source_kind: str
    destination_name: str
    destination_kind: str
    routing_key: str
    arguments: dict[str, Any]


def _binding_row(
    vhost: VHost, source: str, destination: Queue | Exchange, key: str, arguments: Any
) -> BindingRow:
    from harebell.model.queue.contract import Queue

    return {
        "vhost": vhost.name,
        "source_name": source,
        "source_kind": "exchange",
        "destination_name": destination.name,
        "destination_kind": "queue" if isinstance(destination, Queue) else "exchange",
        "routing_key": key,
        "arguments": dict(arguments),
    }


@BINDINGS.listing(
    "bindings",
    tag=MANAGEMENT,
    row=BindingRow,
    shown=("vhost", "source_name", "destination_kind", "destination_name", "routing_key"),
)
def list_bindings(context: AdminContext, vhost: OnlyVhost = None) -> Slices[list[BindingRow]]:
    """List bindings by vhost: those of the default exchange to every queue first."""
    return gathered(_bindings(context.vhosts(vhost)))


def _bindings(vhosts: Iterable[VHost]) -> Iterator[BindingRow]:
    for vhost in vhosts:
        for name, queue in sorted(vhost.queues.items()):
            yield _binding_row(vhost, "", queue, name, {})
        for each in vhost.bindings():
            yield _binding_row(
                vhost, each.source.name, each.destination, each.routing_key, each.arguments
            )


def _ends(
    context: AdminContext, vhost: str, source: str, destination: str, to_exchange: bool
) -> tuple[VHost, Queue | Exchange]:
    """Find the vhost and the destination of a binding.

    Raises:
        CommandRefused: the source or the destination does not exist.
    """
    where = context.vhost(vhost)
    kind = "exchange" if to_exchange else "queue"
    destinations: Mapping[str, Queue | Exchange] = where.exchanges if to_exchange else where.queues
    for what, name, known in (
        ("exchange", source, where.exchanges),
        (kind, destination, destinations),
    ):
        if name not in known:
            raise CommandRefused(
                f"no {what} '{name}' in vhost '{where.name}': `harebell {what}s list` shows all, "
                f"and `harebell {what}s declare` makes one"
            )
    return where, destinations[destination]


def _sentence(known: Mapping[str, Any], done: str) -> str:
    key = f" with the key '{known['routing_key']}'" if known["routing_key"] else ""
    return (
        f"{known['destination_kind']} '{known['destination_name']}' in vhost "
        f"'{known['vhost']}' is {done} to exchange '{known['source_name']}'{key}"
    )


Key = Annotated[str, Argument("Its routing key.", "KEY", short="r")]
ToExchange = Annotated[bool, Argument("DESTINATION is an exchange.")]


@BINDINGS.command(
    tag=MANAGEMENT,
    done=lambda known: _sentence(known, "bound"),
)
def add(
    context: AdminContext,
    source: str,
    destination: str,
    vhost: InVhost = "/",
    routing_key: Key = "",
    to_exchange: ToExchange = False,
    arguments: Table = NO_ARGUMENTS,
) -> BindingRow:
    """Bind the queue DESTINATION to the exchange SOURCE."""
    where, end = _ends(context, vhost, source, destination, to_exchange)
    where.bind(source, end, routing_key, arguments)
    return _binding_row(where, source, end, routing_key, arguments)


@BINDINGS.command(
    tag=MANAGEMENT, verb="delete", done=lambda known: _sentence(known, "no longer bound")
)
def unbind(
    context: AdminContext,
    source: str,
    destination: str,
    vhost: InVhost = "/",
    routing_key: Key = "",
    to_exchange: ToExchange = False,
    arguments: Table = NO_ARGUMENTS,
) -> BindingRow:
    """Delete a binding of the queue DESTINATION to the exchange SOURCE."""
    where, end = _ends(context, vhost, source, destination, to_exchange)
    if not where.unbind(source, end, routing_key, arguments):
        raise CommandRefused(
            f"no binding from exchange '{source}' to '{end.name}' with the key "
            f"'{routing_key}' and these arguments in vhost '{where.name}': "
            "`harebell bindings list` shows all"
        )
    return _binding_row(where, source, end, routing_key, arguments)
