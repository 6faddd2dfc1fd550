"""Rows of exchanges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from harebell.admin.statistics import Range, with_details

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext
    from harebell.model.exchange import Exchange
    from harebell.model.vhost import VHost


class ExchangeRow(TypedDict):
    """What there is to say about an exchange."""

    vhost: str
    name: str
    type: str
    durable: bool
    auto_delete: bool
    internal: bool
    arguments: dict[str, Any]
    policy: str
    messages_delayed: int
    message_stats: dict[str, Any]
    user_who_performed_action: str


def exchange_row(
    context: AdminContext, vhost: VHost, exchange: Exchange, wanted: Range | None = None
) -> ExchangeRow:
    """What there is to say about an exchange."""
    from harebell.model.exchange.delayed import DelayedExchange

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
        "message_stats": with_details(
            {"publish_in": exchange.published, "publish_out": exchange.routed},
            context.statistics.series(exchange),
            wanted,
        ),
        "user_who_performed_action": "",
    }
