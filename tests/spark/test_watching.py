"""`harebell pipeline stats --every`, as it runs until somebody stops it."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from harebell.pipeline.registry import state_of
from tests.patience import eventually
from tests.spark.commanded import PATIENCE_S, Commanded
from tests.spark.test_writer import waiting

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]


def kept(lake: Path) -> list[dict[str, Any]]:
    """The windows that are in the table."""
    try:
        return list(DeltaTable(lake).to_pyarrow_table().to_pylist())
    except TableNotFoundError:
        return []


def test_windows_that_are_over_are_kept_once_also_when_it_is_killed(
    broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    words = ["stats", queue, "--window", "1s", "--every", "500ms", "--to", str(lake)]
    stats = Commanded([*words, "--url", broker_url], tmp_path)
    sent = 0

    def counted() -> int:
        """Messages in kept windows; one more is published, for time goes on with messages only."""
        nonlocal sent
        channel.basic_publish("", queue, b"12345678")
        sent += 1
        return sum(row["messages"] for row in kept(lake))

    with stats.running() as process:
        assert eventually(lambda: counted() >= 20, PATIENCE_S), stats.said
        process.kill()
        assert stats.ended(process) == -signal.SIGKILL
    before = sent
    with stats.running() as process:
        assert eventually(lambda: counted() > before, PATIENCE_S), stats.said
        process.send_signal(signal.SIGTERM)
        assert stats.ended(process) == 0, stats.said
    assert state_of(stats.registry, f"stats-{queue}").state == "ended"
    windows = kept(lake)
    starts = [row["start"] for row in windows]
    assert len(set(starts)) == len(starts), "no window is there twice"
    assert before < sum(row["messages"] for row in windows) <= sent
    assert all(row["octets"] == 8 * row["messages"] for row in windows)
    assert waiting(channel, queue) == sent, "nothing was taken"
