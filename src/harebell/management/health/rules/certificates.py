"""A certificate of a listener has expired, or expires soon."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from harebell.admin.findings import NODE
from harebell.config import Config
from harebell.management.health.rule import IsOn, NodeRule, Seen, command, span
from harebell.management.health.trails import NodeTrail

_MS = 1_000
_DAY = 86_400


def _look(node: NodeTrail, config: Config, _is_on: IsOn) -> Iterator[Seen | None]:
    within = config.health_certificate_days * _DAY
    if not within:
        return
    expiry = {each.path: each.expires_at for _, each in node.source.certificates()}
    for path, expires_at in sorted(expiry.items()):
        left = expires_at - node.now / _MS
        if left <= within:
            on = f"{datetime.fromtimestamp(expires_at, UTC):%Y-%m-%d %H:%M} UTC"
            yield Seen(
                f"it expires in {span(left)}, on {on}" if left > 0 else f"it has expired on {on}",
                "Put a new one in its place; it is read at once.",
                command("config", "reload"),
                round((expires_at - within) * _MS) if left > 0 else expires_at * _MS,
                path,
            )


RULE = NodeRule("certificate", NODE, _look, passes=1)
