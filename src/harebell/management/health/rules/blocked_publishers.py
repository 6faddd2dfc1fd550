"""Publishers wait, as memory, disk or open files are short."""

from __future__ import annotations

from collections.abc import Iterator

from harebell.admin.findings import ALARM
from harebell.config import Config
from harebell.management.health.rule import IsOn, NodeRule, Seen, command
from harebell.management.health.trails import NodeTrail

_REPAIRS = {
    "memory": ("Consume or purge what fills it, or raise memory_high_watermark.", "queues"),
    "disk": ("Free space, or consume what fills it.", "queues"),
    "file handles": ("Raise the limit of open files (ulimit -Hn).", "connections"),
}
_LARGEST = {
    "queues": command("queues", "list", "vhost", "name", "messages", "message_bytes"),
    "connections": command("connections", "list", "name", "user"),
}


def _look(node: NodeTrail, _config: Config, _is_on: IsOn) -> Iterator[Seen | None]:
    publishers = node.source.registry.publishers
    waiting = len(publishers.connections)
    for what, alarm in sorted(publishers.alarms.items()):
        advice, shown = _REPAIRS[what]
        whom = f"{waiting} connection{'' if waiting == 1 else 's'} wait" if waiting else "they wait"
        why = f"{what} is short, so publishers are blocked ({whom}): {alarm.about}"
        yield Seen(why, advice, _LARGEST[shown], alarm.since_ms, what)


RULE = NodeRule("blocked-publishers", ALARM, _look, passes=1)
