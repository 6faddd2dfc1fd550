"""The oldest message of a queue with consumers waits much longer than is usual there.

It is left out where another rule tells why.
"""

from __future__ import annotations

from harebell.config import Config
from harebell.management.health.rule import QueueRule, Seen, command, eased, span
from harebell.management.health.trails import QueueTrail
from harebell.management.limits import USUAL_TIMES


def _look(trail: QueueTrail, config: Config, on: bool) -> Seen | None:
    limit, usual = config.health_oldest_seconds, trail.usual
    if not limit or not trail.consumers or trail.parks or trail.troubled:
        return None
    if trail.age < eased(max(limit, usual * USUAL_TIMES), on):
        return None
    queue = trail.queue
    return Seen(
        f"the oldest message waits for {span(trail.age)}; usual: {span(usual)}",
        "Add consumers, or find out why they are slow.",
        command("queues", "show", vhost=queue.vhost, about=queue.name),
        trail.now - round(trail.age * 1_000),
    )


RULE = QueueRule("old-messages", _look)
