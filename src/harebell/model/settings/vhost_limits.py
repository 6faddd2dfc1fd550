"""Vhost limits: most connections and queues of one vhost.

As in RabbitMQ they are the parameter `limits` of the component `vhost-limits`. A negative number is
no limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.base.names import did_you_mean
from harebell.model.resource import precondition

COMPONENT = "vhost-limits"
NAME = "limits"
MAX_CONNECTIONS = "max-connections"
MAX_QUEUES = "max-queues"
KEYS = (MAX_CONNECTIONS, MAX_QUEUES)
_MAX = 2**31


def unknown_limits(value: Any) -> list[str]:
    """Return the limits that Harebell does not support."""
    return [key for key in value if key not in KEYS] if isinstance(value, dict) else []


def check_limits(value: Any, *, strict: bool = True) -> None:
    """Refuse invalid limits.

    Args:
        value: the limits.
        strict: whether unknown limits are refused, too.

    Raises:
        Refusal: PRECONDITION_FAILED, naming the limit.
    """
    if not isinstance(value, dict):
        raise precondition('the limits of a vhost are an object such as {"max-queues": 100}')
    for key, limit in value.items():
        if key not in KEYS and not strict:
            continue
        if key not in KEYS:
            raise precondition(f"vhosts have no limit '{key}': {did_you_mean(key, KEYS)}")
        if isinstance(limit, bool) or not isinstance(limit, int) or not -_MAX < limit < _MAX:
            raise precondition(
                f"{key} is {limit!r}: give a whole number below 2^31, negative for no limit"
            )


def over(limits: Mapping[str, Any], key: str, count: int) -> int | None:
    """Return the limit if the count has reached it, else None."""
    limit = limits.get(key, -1)
    return limit if 0 <= limit <= count else None
