"""Commands for exchanges. The columns have the names of rabbitmqctl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import NO_ARGUMENTS, Durable, InVhost, OnlyVhost, Table
from harebell.admin.catalog import EXCHANGES
from harebell.admin.command import MANAGEMENT, Argument, Row
from harebell.admin.context import (
    AdminContext,
    CommandRefused,
    checked_name,
    checked_table,
    missing,
)
from harebell.admin.ranges import Age, Increment, range_of
from harebell.admin.rows.details import exchange_incoming, exchange_outgoing
from harebell.admin.rows.exchanges import EXCHANGE_COLUMNS, exchange_row, listed_row
from harebell.base.limits import NAME_BYTES
from harebell.base.slices import Slices, gathered, steps

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
        raise missing_exchange(where, name)
    return where, exchange


def missing_exchange(vhost: VHost, name: str) -> CommandRefused:
    """Return the refusal for an exchange that does not exist."""
    return missing(
        f"no exchange '{name or DEFAULT_EXCHANGE}' in vhost '{vhost.name}': "
        "`harebell exchanges list` shows all"
    )


@EXCHANGES.listing(
    "exchanges",
    "GET /api/exchanges",
    "GET /api/exchanges/{vhost}",
    tag=MANAGEMENT,
    row=EXCHANGE_COLUMNS,
    shown=("vhost", "name", "type", "durable", "policy", "messages_delayed"),
)
def list_exchanges(context: AdminContext, vhost: OnlyVhost = None) -> Slices[list[Any]]:
    """List exchanges by vhost and name; the default exchange has the name ""."""
    return gathered(
        listed_row(context, each, exchange)
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
    period = range_of(msg_rates_age, msg_rates_incr, "msg_rates")
    where, exchange = find_exchange(context, vhost, name)
    return _shown(context, where, exchange, period)


def _shown(
    context: AdminContext, where: VHost, exchange: Exchange, period: Range | None
) -> Slices[Row]:
    incoming = yield from exchange_incoming(context, where, exchange, period)
    outgoing = yield from exchange_outgoing(context, where, exchange, period)
    return {
        **exchange_row(context, where, exchange, period),
        "incoming": incoming,
        "outgoing": outgoing,
    }


def _declared(outcome: Mapping[str, Any]) -> str:
    done = "was declared" if outcome["made"] else "is there already, and like that"
    return f"exchange '{outcome['name']}' in vhost '{outcome['vhost']}' {done}"


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
    from harebell.front.common.names import clean
    from harebell.front.operations.declare import ExchangeOptions, declare_exchange

    where = context.vhost(vhost)
    name = checked_name(clean(name), "exchange", NAME_BYTES)
    taken = checked_table(arguments, f"the arguments of exchange '{name}'")
    made = name not in where.exchanges
    options = ExchangeOptions(durable, auto_delete, internal, taken)
    exchange = declare_exchange(context.caller(where), name, type_, options)
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
) -> Slices[Row]:
    """Delete an exchange and its bindings."""
    from harebell.front.operations.delete import deletable_exchange, exchange_deletion

    where = context.vhost(vhost)
    exchange = deletable_exchange(context.caller(where), name, if_unused=if_unused)
    if exchange is None:
        raise missing_exchange(where, name)
    yield from steps(exchange_deletion(where, name, exchange))
    context.log("info", f"exchange '{name}' in vhost '{where.name}' was deleted")
    return {"vhost": where.name, "name": name}
