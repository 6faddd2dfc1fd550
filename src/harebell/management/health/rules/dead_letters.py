"""A queue makes many dead letters; the finding has them by reason.

Messages that expire in a queue without consumers are meant to: they wait there for a retry.
"""

from __future__ import annotations

from harebell.config import Config
from harebell.management.health.rule import QueueRule, Seen, command, eased, rounded
from harebell.management.health.trails import QueueTrail
from harebell.model.dead_letter import EXPIRED

_MINUTE = 60


def _look(trail: QueueTrail, config: Config, on: bool) -> Seen | None:
    limit = config.health_dead_letters_per_minute
    rates = {
        reason: each.mean * _MINUTE
        for reason, each in trail.letters.items()
        if trail.consumers or reason != EXPIRED
    }
    if not limit or sum(rates.values()) < eased(limit, on):
        return None
    reasons = sorted(rates, key=lambda reason: -rates[reason])
    listed = ", ".join([f"{reason} {rounded(rates[reason])}" for reason in reasons])
    queue = trail.queue
    return Seen(
        f"dead letters a minute by reason: {listed}",
        "Look at why they died; retry them when that is corrected.",
        command("dead-letters", "list", vhost=queue.vhost),
    )


RULE = QueueRule("dead-letters", _look)
