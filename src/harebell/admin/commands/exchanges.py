"""Commands for exchanges. The columns have the names of rabbitmqctl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import NO_ARGUMENTS, Durable, InVhost, OnlyVhost, Table
from harebell.admin.catalog import EXCHANGES
from harebell.admin.command import MANAGEMENT, Argument, Row
from harebell.admin.context import AdminContext, checked_name, missing
from harebell.admin.ranges import Age, Increment, range_of
from harebell.admin.rows.details import exchange_incoming, exchange_outgoing
from harebell.admin.rows.exchanges import ExchangeRow, exchange_row
from harebell.base.limits import NAME_BYTES
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.admin.statistics import Range
    from harebell.model.exchange import Exchange
    from harebell.model.vhost import VHost

DEFAULT_EXCHANGE = "amq.default"


def find_exchange(context: AdminContext, vhost: str, name: str) -> tuple[VHost, Exchange]:
    """Return an exchange and its vhost.

    Raises:
        CommandRefused: there is none.
    """
    where = context.vhost(vhost)
    exchange = where.exchanges.get(name)
    if exchange is None:
        raise missing(
            f"no exchange '{name or DEFAULT_EXCHANGE}' in vhost '{where.name}': "
            "`harebell exchanges list` shows all"
        )
    return where, exchange


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
    where, exchange = find_exchange(context, vhost, name)
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
    durable: Durable = True,
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
    find_exchange(context, vhost, name)
    where.delete_exchange(name, if_unused=if_unused)
    context.log("info", f"exchange '{name}' in vhost '{where.name}' was deleted")
    return {"vhost": where.name, "name": name}
