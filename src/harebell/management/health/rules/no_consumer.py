"""A queue has messages, and nothing takes them; queues for dead letters may be like that."""

from __future__ import annotations

from harebell.config import Config
from harebell.management.health.rule import QueueRule, Seen, command, span
from harebell.management.health.trails import QueueTrail

_MS = 1_000


def _look(trail: QueueTrail, config: Config, _on: bool) -> Seen | None:
    seconds = (trail.now - trail.alone_since) / _MS
    limit = config.health_no_consumer_seconds
    if not limit or not trail.alone_since or trail.parks or seconds < limit:
        return None
    queue = trail.queue
    count = queue.ready_count()
    return Seen(
        f"no consumer for {span(seconds)}; messages that wait: {count:,}",
        "Start its consumers. If the messages are of no use, purge it.",
        command("queues", "purge", vhost=queue.vhost, about=queue.name, only=queue.identity),
        trail.alone_since,
        generation=queue.identity,
    )


RULE = QueueRule("no-consumer", _look, passes=1)
