"""Asynchronous progress tracking: what Spark asks there does not prove what its log has."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.patience import SECONDS
from tests.spark.asking import publish

pytestmark = [pytest.mark.timeout(1_200), pytest.mark.spark]

DRIVER = Path(__file__).with_name("epochs_driver.py")
MESSAGES = 1_000
"""Twenty micro-batches."""


def started(
    url: str, queue: str, directory: Path, delivery: str, *seconds: str
) -> subprocess.Popen[bytes]:
    """A driver in a process group of its own."""
    with (directory / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(DRIVER), url, queue, str(directory), delivery, *seconds],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def epochs(directory: Path) -> set[int]:
    """The micro-batches that the sink has something of."""
    names = [path.name for path in (directory / "sink").iterdir() if not path.suffix]
    return {int(name.partition("-")[0]) for name in names}


def killed_after(driver: subprocess.Popen[bytes], directory: Path, count: int) -> None:
    """kill -9 of all processes of a driver when the sink has so many micro-batches, or it ended."""
    until = time.monotonic() + 10 * SECONDS
    while len(epochs(directory)) < count and driver.poll() is None:
        assert time.monotonic() < until, (directory / "driver.log").read_text()
        time.sleep(0.02)
    with suppress(ProcessLookupError):
        os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
def test_nothing_is_lost_where_progress_was_to_be_tracked_asynchronously(
    broker_url: str, channel: Any, queue: str, tmp_path: Path, delivery: str
) -> None:
    (tmp_path / "sink").mkdir()
    publish(channel, queue, 0, MESSAGES)
    # The log gets the first micro-batch of a run, and no other one in so much time.
    killed_after(started(broker_url, queue, tmp_path, delivery, "3600"), tmp_path, 6)
    refused = "asyncProgressTrackingEnabled" in (tmp_path / "driver.log").read_text()
    last = started(broker_url, queue, tmp_path, delivery)
    assert last.wait(20 * SECONDS) == 0, (tmp_path / "driver.log").read_text()
    parts = [path.read_text().split() for path in (tmp_path / "sink").iterdir()]
    times = Counter(int(body) for part in parts for body in part)
    assert set(times) == set(range(MESSAGES))
    assert refused, "the log of the driver should say why it ended"
    if delivery == "exactly-once":
        assert times.total() == MESSAGES
