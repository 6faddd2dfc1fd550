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

MESSAGES = 4_000
"""Published for every run; a driver that is not killed in time processes them all."""
KILLS = 2
BATCH = 500
DRIVER = Path(__file__).with_name("driver.py")


def start(url: str, queue: str, directory: Path) -> subprocess.Popen[bytes]:
    """A driver in a process group of its own."""
    with (directory / "driver.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(DRIVER), url, queue, str(directory), "at-least-once"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def publish(url: str, queue: str, first: int, end: int) -> None:
    with blocking.connect(url) as connection:
        numbered = (b"%d" % number for number in range(first, end))
        connection.channel().publish_many(numbered, routing_key=queue, delivery_mode=2)


def planned(directory: Path) -> int:
    """How many micro-batches Spark has written down."""
    offsets = directory / "checkpoint" / "offsets"
    return sum(path.name.isdigit() for path in offsets.iterdir()) if offsets.is_dir() else 0


def committed(directory: Path) -> int:
    commits = directory / "checkpoint" / "commits"
    return sum(path.name.isdigit() for path in commits.iterdir()) if commits.is_dir() else 0


def killed_in_mid_batch(driver: subprocess.Popen[bytes], directory: Path, batches: int) -> bool:
    """Kill the driver and all its processes while a micro-batch after so many is under way.

    Returns:
        Whether there was time: nobody holds the driver up, and it may have ended before.
    """
    until = time.monotonic() + 400
    while not (planned(directory) >= batches and planned(directory) > committed(directory)):
        if (code := driver.poll()) is not None:
            assert code == 0, (directory / "driver.log").read_text()
            return False
        assert time.monotonic() < until, "the driver made no progress"
        time.sleep(0.002)
    os.killpg(driver.pid, signal.SIGKILL)
    return driver.wait() == -signal.SIGKILL


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
    rng = random.Random(2013)
    sent = kills = 0
    while kills < KILLS:
        publish(broker_url, queue, sent, sent + MESSAGES)
        sent += MESSAGES
        before = planned(tmp_path)
        driver = start(broker_url, queue, tmp_path)
        killed = killed_in_mid_batch(driver, tmp_path, before + 4 + rng.randrange(3))
        # Nothing left is a kill that was too late to prove anything.
        kills += everything_is_back(channel, queue) > 0 and killed
    last = start(broker_url, queue, tmp_path)
    assert last.wait(600) == 0, (tmp_path / "driver.log").read_text()
    assert everything_is_back(channel, queue) == 0
    rows = spark.read.parquet(str(tmp_path / "lake")).collect()
    times = Counter(int(row["value"]) for row in rows)
    assert set(times) == set(range(sent))
    # A kill repeats at most what was not acknowledged: the micro-batch under way and, when its
    # predecessor's acknowledgement was on its way, that one.
    assert sum(times.values()) - sent <= KILLS * 2 * BATCH
    marked = {int(row["value"]) for row in rows if row["redelivered"]}
    assert {number for number, count in times.items() if count > 1} <= marked
