"""Messages of a queue are delivered and given back again and again."""

from __future__ import annotations

from harebell.config import Config
from harebell.management.health.rule import QueueRule, Seen, command, eased, rounded
from harebell.management.health.trails import QueueTrail

_SHARE = 0.5
"""The least share of redeliveries in the deliveries of a loop."""


def _look(trail: QueueTrail, config: Config, on: bool) -> Seen | None:
    limit = config.health_redeliveries_per_second
    again, deliveries = trail.redelivered.rate, trail.delivered.rate
    if not limit or again < eased(limit, on) or again < deliveries * _SHARE:
        return None
    queue = trail.queue
    return Seen(
        f"{rounded(again)} of {rounded(deliveries)} deliveries a second are redeliveries",
        "Correct the consumer that gives them back; reject what it cannot handle without requeue.",
        command("queues", "browse", vhost=queue.vhost, about=queue.name),
    )


RULE = QueueRule("redelivery-loop", _look)
