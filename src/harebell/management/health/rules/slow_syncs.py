"""The syncs of commits take long, and confirms wait for them."""

from __future__ import annotations

from collections.abc import Iterator

from harebell.admin.findings import NODE
from harebell.config import Config
from harebell.management.health.rule import IsOn, NodeRule, Seen, command, eased
from harebell.management.health.trails import NodeTrail

_MS = 1_000
_FEWEST = 3
"""Syncs between two looks from which on their mean says something."""


def _look(node: NodeTrail, config: Config, is_on: IsOn) -> Iterator[Seen | None]:
    count, mean = node.syncs
    limit = config.health_sync_ms
    if limit and count >= _FEWEST and mean * _MS >= eased(limit, is_on("", "syncs")):
        yield Seen(
            f"a sync of the disk takes {mean * _MS:.0f} ms in the mean, and confirms wait for it",
            "Look at what else uses the disk, or give the data directory a faster one.",
            command("status"),
            name="syncs",
        )


RULE = NodeRule("slow-syncs", NODE, _look)
