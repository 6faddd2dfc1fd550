"""The figures of a store in PostgreSQL, for `harebell status` and the HTTP API."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harebell.cluster.postgresql.ownership import BrokerRow, StoreRow
    from harebell.cluster.postgresql.standby_lag import Lag


def seen_figures(number: int, seen: StoreRow) -> dict[str, Any]:
    """Return what a standby knows about the store with a number."""
    return {
        "kind": "postgresql",
        "store": number,
        "epoch": seen.epoch,
        "owner": "" if seen.released else seen.owner,
        "lease_seconds": seen.lease_ms / 1_000,
    }


def cluster_rows(
    store: int,
    nodes: Iterable[BrokerRow],
    lag_of: Callable[[int], Lag | None] = lambda _number: None,
) -> list[dict[str, Any]]:
    """Return the brokers of a store, as `harebell cluster status` shows them.

    Args:
        store: its number.
        nodes: its brokers.
        lag_of: returns how far a broker is behind that has read up to a row of the log.
    """
    lags = {each.name: lag_of(each.number) for each in nodes if each.state == "standby"}
    return [
        {
            "store": store,
            "name": each.name,
            "state": each.state if each.running else "gone",
            "running": each.running,
            "address": each.address,
            "version": each.version,
            "behind_bytes": None if (lag := lags.get(each.name)) is None else lag.size,
            "behind_seconds": None if lag is None else round(lag.seconds, 3),
        }
        for each in nodes
    ]
