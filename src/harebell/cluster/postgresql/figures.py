"""The figures of a store in PostgreSQL, for `harebell status` and the HTTP API."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harebell.cluster.postgresql.ownership import BrokerRow, StoreRow


def seen_figures(number: int, seen: StoreRow) -> dict[str, Any]:
    """Return what a standby knows about the store with a number."""
    return {
        "kind": "postgresql",
        "store": number,
        "epoch": seen.epoch,
        "owner": "" if seen.released else seen.owner,
        "lease_seconds": seen.lease_ms / 1_000,
    }


def cluster_rows(store: int, nodes: Iterable[BrokerRow]) -> list[dict[str, Any]]:
    """Return the brokers of a store, as `harebell cluster status` shows them.

    Args:
        store: its number.
        nodes: its brokers.
    """
    return [
        {
            "store": store,
            "name": each.name,
            "state": each.state if each.running else "gone",
            "running": each.running,
            "address": each.address,
            "version": each.version,
        }
        for each in nodes
    ]
