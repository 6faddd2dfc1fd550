"""Publish: the exchange that a message is published to."""

from __future__ import annotations

from collections.abc import Callable

from harebell.auth.permissions import WRITE
from harebell.front.common.channel_like import Requester
from harebell.front.common.permission import EXCHANGE, check
from harebell.model.exchange.kind import Exchange
from harebell.model.resource import rendered


def writable_exchange(
    requester: Requester, name: str, internal: Callable[[str], Exception]
) -> Exchange:
    """Find an exchange to publish to.

    Args:
        requester: who publishes.
        name: of the exchange.
        internal: makes the version's error for an exchange that is internal.

    Raises:
        Refusal: the user may not write to it, or there is none.
    """
    check(requester, WRITE, EXCHANGE, name)
    exchange = requester.vhost.exchange(name)
    if exchange.internal:
        thing = rendered(EXCHANGE, name, requester.vhost.name)
        raise internal(f"cannot publish to internal {thing}")
    return exchange
