"""Many connections are opened: a client may open one for each message."""

from __future__ import annotations

from collections.abc import Iterator

from harebell.admin.findings import NODE
from harebell.config import Config
from harebell.management.health.rule import IsOn, NodeRule, Seen, command, eased, rounded
from harebell.management.health.trails import NodeTrail


def _look(node: NodeTrail, config: Config, is_on: IsOn) -> Iterator[Seen | None]:
    limit, opened = config.health_connections_per_second, node.opened.mean
    if limit and opened >= eased(limit, is_on("", "connections")):
        yield Seen(
            f"{rounded(opened)} connections are opened a second",
            "Let clients keep their connections, and open channels instead.",
            command("connections", "list", "name", "user", "connected_at"),
            name="connections",
        )


RULE = NodeRule("connection-churn", NODE, _look)
