"""Memory or free disk space reaches the limit at which publishers are blocked, if it goes on."""

from __future__ import annotations

from collections.abc import Iterator

from harebell.admin.findings import NODE
from harebell.config import Config
from harebell.management.health.rule import IsOn, NodeRule, Seen, command, span, widened
from harebell.management.health.trails import NodeTrail
from harebell.management.limits import FULL_SHARE

_MINUTE = 60
_MIB = 1_048_576
_LARGEST = command("queues", "list", "vhost", "name", "messages", "message_bytes")


def _look(node: NodeTrail, config: Config, is_on: IsOn) -> Iterator[Seen | None]:
    horizon = config.health_trend_minutes * _MINUTE
    high, storage = node.source.broker.gauge.high, node.source.storage
    left, growth = high - node.memory.last, node.memory.mean
    fills = 0 < left <= high * (1 - FULL_SHARE) and growth > 0
    if fills and left / growth <= widened(horizon, is_on("", "memory")):
        yield Seen(
            f"memory grows by {growth / _MIB:.1f} MiB a second, and publishers are blocked in "
            f"{span(left / growth)}",
            "Consume or purge what fills it, or raise memory_high_watermark.",
            _LARGEST,
            name="memory",
        )
    left, growth = storage.free - storage.free_limit, -node.disk.mean
    fills = storage.free_limit > 0 and left > 0 and growth > 0
    if fills and left / growth <= widened(horizon, is_on("", "disk")):
        yield Seen(
            f"free disk space falls by {growth / _MIB:.1f} MiB a second, and publishers are "
            f"blocked in {span(left / growth)}",
            "Free space, or consume what fills it.",
            _LARGEST,
            name="disk",
        )


RULE = NodeRule("trend", NODE, _look, passes=5)
