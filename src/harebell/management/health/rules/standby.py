"""A broker that shares the store does not run, or is behind: it cannot take over, or not soon."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from harebell.admin.findings import NODE
from harebell.config import Config
from harebell.management.health.rule import IsOn, NodeRule, Seen, command, eased, span
from harebell.management.health.trails import NodeTrail


def _look(node: NodeTrail, config: Config, is_on: IsOn) -> Iterator[Seen | None]:
    limit = config.health_standby_seconds
    for each in node.brokers():
        name, lag = each["name"], each.get("behind_seconds") or 0
        if not each["running"]:
            why = f"it does not run, and cannot take over store {each['store']}"
            advice = "Start it again."
        elif limit and lag >= eased(limit, is_on("", name)):
            why = f"it follows store {each['store']} too slowly"
            advice = "Look at its processor and disk, and at its network to PostgreSQL."
        else:
            continue
        yield Seen(f"{why}{_behind(each)}", advice, command("cluster", "status"), name=name)


def _behind(broker: dict[str, Any]) -> str:
    """Say how far a broker is behind; "" if that is unknown."""
    size, seconds = broker.get("behind_bytes"), broker.get("behind_seconds")
    if not seconds:
        return ""
    return f"; it is {size:,} bytes and {span(seconds)} behind"


RULE = NodeRule("standby", NODE, _look, passes=2)
