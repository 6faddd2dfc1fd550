"""At least once, the hard way: the driver is killed in mid-batch, and no message is missing."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harebell.client import blocking

pytestmark = pytest.mark.timeout(2_400)

MESSAGES = 8_000
KILLS = 2
DRIVER = Path(__file__).with_name("driver.py")


def start(url: str, queue: str, folder: Path) -> subprocess.Popen[bytes]:
    """A driver in a process group of its own."""
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(DRIVER), url, queue, str(folder), "at-least-once"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def planned(folder: Path) -> int:
    """How many micro-batches Spark has written down."""
    offsets = folder / "checkpoint" / "offsets"
    return sum(path.name.isdigit() for path in offsets.iterdir()) if offsets.is_dir() else 0


def committed(folder: Path) -> int:
    commits = folder / "checkpoint" / "commits"
    return sum(path.name.isdigit() for path in commits.iterdir()) if commits.is_dir() else 0


def kill_in_mid_batch(driver: subprocess.Popen[bytes], folder: Path, batches: int) -> None:
    """Kill the driver and all its processes while a micro-batch after so many is under way."""
    until = time.monotonic() + 400
    while not (planned(folder) >= batches and planned(folder) > committed(folder)):
        assert driver.poll() is None, (folder / "driver.log").read_text()
        assert time.monotonic() < until, "the driver made no progress"
        time.sleep(0.002)
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def everything_is_back(channel: Any, queue: str) -> int:
    """Wait until the broker has taken back what the dead driver held; how much there is."""
    before, until = -1, time.monotonic() + 120
    while time.monotonic() < until:
        declared = channel.queue_declare(queue, passive=True).method
        if declared.consumer_count == 0 and declared.message_count == before:
            return before
        before = declared.message_count
        time.sleep(0.5)
    raise AssertionError("the dead driver still consumes")


def test_a_killed_driver_loses_no_message(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    with blocking.connect(broker_url) as connection:
        numbered = (b"%d" % number for number in range(MESSAGES))
        connection.channel().publish_many(numbered, routing_key=queue, delivery_mode=2)
    rng = random.Random(2013)
    for kill in range(KILLS):
        driver = start(broker_url, queue, tmp_path)
        kill_in_mid_batch(driver, tmp_path, (kill + 1) * 4 + rng.randrange(3))
        assert everything_is_back(channel, queue) > 0, "killed too late to prove anything"
    last = start(broker_url, queue, tmp_path)
    assert last.wait(600) == 0, (tmp_path / "driver.log").read_text()
    assert everything_is_back(channel, queue) == 0
    rows = spark.read.parquet(str(tmp_path / "lake")).collect()
    times = Counter(int(row["value"]) for row in rows)
    assert set(times) == set(range(MESSAGES))
    # A kill repeats at most what was not acknowledged: the micro-batch under way and, when its
    # predecessor's acknowledgement was on its way, that one.
    assert sum(times.values()) - MESSAGES <= KILLS * 2 * 500
    marked = {int(row["value"]) for row in rows if row["redelivered"]}
    assert {number for number, count in times.items() if count > 1} <= marked
