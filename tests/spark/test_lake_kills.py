"""Pipelines into Delta and Iceberg whose driver is killed: exact counts when they run again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harebell.client import blocking
from tests.running import command, environment
from tests.spark.lakes import KINDS, Lake

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_800)]

MESSAGES = 60
PIPELINE = """
pipeline: orders
source:
  url: ${URL}
  queue: ${QUEUE}
  fetchTimeout: 300s
  maxOffsetsPerTrigger: 20
  body: {format: json, schema: "id BIGINT"}
steps:
  - sql: SELECT data.id, timestamp FROM source
sinks:
  - SINK: ${TABLE}
    name: lake
    compactEvery: 2
    KEYS
  - console: {}
    where: java_method('java.lang.Thread', 'sleep', ${PAUSE}L) IS NULL
checkpoint: checkpoint
"""
KEYS = {
    "delta": "mergeSchema: false",
    "iceberg": "catalog: sqlite:///catalog.db\n    warehouse: tables",
}
TABLES = {"delta": "table", "iceberg": "shop.orders"}


class Driver:
    """`harebell pipeline run` in a process group of its own, which can be killed at any time."""

    def __init__(self, lake: Lake, url: str, queue: str, pause_ms: int) -> None:
        text = PIPELINE.replace("KEYS", KEYS[lake.kind]).replace("SINK", lake.kind)
        (lake.directory / "orders.yaml").write_text(text)
        self._log = lake.directory / "log"
        variables = {
            "URL": url,
            "QUEUE": queue,
            "SINK": lake.kind,
            "TABLE": TABLES[lake.kind],
            "PAUSE": str(pause_ms),
            "HAREBELL_PIPELINES": str(lake.directory / "registry"),
        }
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [command(), "pipeline", "run", "orders.yaml"],
                env=environment(variables),
                cwd=lake.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL to the driver, its JVM and its workers."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def ended(self) -> bool:
        return self._process.poll() is not None

    def wait(self) -> None:
        assert self._process.wait(400) == 0, self._log.read_text()

    def log(self) -> str:
        return self._log.read_text()


def ids(lake: Lake) -> list[int]:
    return [row["id"] for row in lake.rows()] if lake.there() else []


@pytest.mark.parametrize("kind", KINDS)
def test_a_driver_that_is_killed_between_the_lake_and_its_checkpoint_writes_once(
    kind: str, broker_url: str, queue: str, tmp_path: Path
) -> None:
    writes_once(Lake(kind, tmp_path), broker_url, queue, more_kills=0)


@pytest.mark.soak
@pytest.mark.parametrize("kind", KINDS)
def test_drivers_that_are_killed_at_any_moment_write_once(
    kind: str, broker_url: str, queue: str, tmp_path: Path
) -> None:
    writes_once(Lake(kind, tmp_path), broker_url, queue, more_kills=2)


def writes_once(lake: Lake, broker_url: str, queue: str, *, more_kills: int) -> None:
    with blocking.connect(broker_url) as connection:
        bodies = [b'{"id": %d}' % number for number in range(MESSAGES)]
        connection.channel().publish_many(bodies, routing_key=queue, delivery_mode=2)
    driver = Driver(lake, broker_url, queue, 60_000)
    until = time.monotonic() + 400
    while len(ids(lake)) < 20:
        assert time.monotonic() < until, driver.log()
        assert not driver.ended(), driver.log()
        time.sleep(0.2)
    driver.kill()
    assert ids(lake) == list(range(20))
    assert not list((lake.directory / "checkpoint" / "commits").glob("[0-9]*"))
    # More die at moments of which nothing is known.
    for _ in range(more_kills):
        driver = Driver(lake, broker_url, queue, 50)
        time.sleep(random.uniform(5, 20))
        driver.kill()
    Driver(lake, broker_url, queue, 0).wait()
    assert ids(lake) == list(range(MESSAGES))
    hidden = [path for path in lake.directory.rglob("*.parquet") if "_harebell" in path.parts]
    assert not hidden
