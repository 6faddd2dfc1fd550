"""Publish: find the exchange of a message, and refuse what may not be published.

`PublishingChannel` routes a message by this; `returns` has the flags `mandatory` and `immediate`.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.auth.permissions import WRITE
from harebell.front.common.channel_like import Principal
from harebell.front.common.errors import soft
from harebell.front.common.permission import EXCHANGE, check
from harebell.model.exchange.kind import Exchange
from harebell.model.resource import rendered

_PUBLISH = (60, 40)


def writable_exchange(
    principal: Principal, name: str, internal: Callable[[str], Exception]
) -> Exchange:
    """Find an exchange to publish to.

    Args:
        principal: the publisher.
        name: of the exchange.
        internal: makes the version's error for an exchange that is internal.

    Raises:
        Refusal: the user may not write to it, or it does not exist.
    """
    # First, so that a user without the permission does not learn which exchanges exist.
    check(principal, WRITE, EXCHANGE, name)
    exchange = principal.vhost.exchange(name)
    if exchange.internal:
        resource = rendered(EXCHANGE, name, principal.vhost.name)
        raise internal(f"cannot publish to internal {resource}")
    return exchange


def is_internal(text: str) -> Exception:
    """Make the error of 0-9-1 for an internal exchange."""
    return soft(403, text, *_PUBLISH)


def too_large(size: int, limit: int) -> Exception:
    """Make the error for a body over the configured limit, both in bytes."""
    return soft(406, f"message size {size} is larger than configured max size {limit}", *_PUBLISH)
