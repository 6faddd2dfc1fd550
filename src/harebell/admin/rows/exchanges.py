"""Rows of exchanges."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.admin.command import Row
from harebell.admin.rows.lazy import LazyRow
from harebell.admin.statistics import NO_RATES, Range, with_details

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext
    from harebell.model.exchange import Exchange
    from harebell.model.vhost import VHost


EXCHANGE_COLUMNS = (
    *("vhost", "name", "type", "durable", "auto_delete", "internal", "arguments", "policy"),
    *("messages_delayed", "message_sequence", "initial_values", "message_stats"),
    "user_who_performed_action",
)
"""What there is to say about an exchange."""
_QUICK: dict[str, Callable[[AdminContext, VHost, Exchange], Any]] = {
    "vhost": lambda _context, vhost, _exchange: vhost.name,
    "name": lambda _context, _vhost, exchange: exchange.name,
    "type": lambda _context, _vhost, exchange: exchange.KIND,
}
"""The columns that the rows of a list are found and sorted by, as `exchange_row` has them."""


def _rate(name: str) -> Callable[[AdminContext, VHost, Exchange], Any]:
    def rate(context: AdminContext, _vhost: VHost, exchange: Exchange) -> Any:
        series = context.statistics.series(exchange)
        return None if series is NO_RATES else series.rate(name)

    return rate


_LISTED = {
    **_QUICK,
    "message_stats.publish_in_details.rate": _rate("publish_in"),
    "message_stats.publish_out_details.rate": _rate("publish_out"),
}
"""With the rates that lists are sorted by, without the statistics that have them."""


def listed_row(context: AdminContext, vhost: VHost, exchange: Exchange) -> LazyRow:
    """Return the row of an exchange in a list."""
    return LazyRow(_LISTED, exchange_row, context, vhost, exchange)


def exchange_row(
    context: AdminContext, vhost: VHost, exchange: Exchange, period: Range | None = None
) -> Row:
    """What there is to say about an exchange."""
    from harebell.model.exchange.delayed import DelayedExchange
    from harebell.wire.json_values import shown_table

    policy, tap = vhost.policies.policy_of(exchange), exchange.tap
    return {
        "vhost": vhost.name,
        "name": exchange.name,
        "type": exchange.KIND,
        "durable": exchange.durable,
        "auto_delete": exchange.auto_delete,
        "internal": exchange.internal,
        "arguments": shown_table(exchange.arguments),
        "policy": "" if policy is None else policy.name,
        "messages_delayed": exchange.delayed if isinstance(exchange, DelayedExchange) else 0,
        "message_sequence": 0 if tap is None else tap.last_number(),
        "initial_values": 0 if tap is None else tap.value_count(),
        "message_stats": with_details(
            {"publish_in": exchange.published, "publish_out": exchange.routed},
            context.statistics.series(exchange),
            period,
        ),
        "user_who_performed_action": "",
    }
