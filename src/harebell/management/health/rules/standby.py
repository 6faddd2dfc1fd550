"""A broker that shares the store does not run, so it cannot take over."""

from __future__ import annotations

from collections.abc import Iterator

from harebell.admin.findings import NODE
from harebell.config import Config
from harebell.management.health.rule import IsOn, NodeRule, Seen, command
from harebell.management.health.trails import NodeTrail


def _look(node: NodeTrail, _config: Config, _is_on: IsOn) -> Iterator[Seen | None]:
    for each in node.brokers():
        if not each["running"]:
            yield Seen(
                f"it does not run, and cannot take over store {each['store']}",
                "Start it again.",
                command("cluster", "status"),
                name=each["name"],
            )


RULE = NodeRule("standby", NODE, _look, passes=2)
