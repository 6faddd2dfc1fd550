"""The consumers of a queue hold all that they may have, and acknowledge nothing."""

from __future__ import annotations

from harebell.config import Config
from harebell.management.health.rule import QueueRule, Seen, command, span
from harebell.management.health.trails import QueueTrail

_MS = 1_000


def _look(trail: QueueTrail, config: Config, _on: bool) -> Seen | None:
    seconds = (trail.now - trail.still_since) / _MS
    limit = config.health_held_seconds
    if not limit or not trail.still_since or seconds < limit:
        return None
    queue = trail.queue
    return Seen(
        f"its consumers hold {queue.unacked:,} messages and have acknowledged none for "
        f"{span(seconds)}, {queue.ready_count():,} wait",
        "Look for a consumer that hangs, and close its connection: the messages return.",
        command("channels", "list", "name", "connection", "messages_unacknowledged"),
        trail.still_since,
    )


RULE = QueueRule("all-unacknowledged", _look, passes=1)
