"""A queue reaches its length limit, if it goes on, or has reached it and refuses messages."""

from __future__ import annotations

from typing import Any

from harebell.config import Config
from harebell.management.health.rule import QueueRule, Seen, command, rounded, span, widened
from harebell.management.health.trails import Change, QueueTrail
from harebell.management.limits import FULL_SHARE

_MINUTE = 60


def _look(trail: QueueTrail, config: Config, on: bool) -> Seen | None:
    queue, limits = trail.queue, getattr(trail.queue, "limits", None)
    if limits is None or not config.health_full_minutes:
        return None
    show = command("queues", "show", vhost=queue.vhost, about=queue.name)
    if not limits.drops and trail.ready.last and (limits.refusing or _is_full(trail, limits)):
        return Seen("it is full, and refuses messages", "Add consumers, or raise its limit.", show)
    horizon = widened(config.health_full_minutes * _MINUTE, on)
    for change, limit, unit in (
        (trail.ready, limits.max_length, "messages"),
        (trail.byte_count, limits.max_bytes, "bytes"),
    ):
        growth, left = change.mean, limit - change.last
        fills = limit > 0 and 0 < left <= limit * (1 - FULL_SHARE) and growth > 0
        if fills and left / growth <= horizon:
            return Seen(
                f"it grows by {rounded(growth)} {unit} a second, and is full in "
                f"{span(left / growth)}: {change.last:,} of {limit:,} {unit}",
                "Add consumers, or raise its limit.",
                show,
            )
    return None


def _is_full(trail: QueueTrail, limits: Any) -> bool:
    length: Change = trail.ready
    return bool(
        0 <= limits.max_length <= length.last
        or (limits.counts and 0 <= limits.max_bytes <= trail.byte_count.last)
    )


RULE = QueueRule("queue-fills", _look)
