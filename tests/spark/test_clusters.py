"""Clusters of real processes: executors that have no Harebell get it from the session."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import harebell
from harebell.base.impl import chosen
from harebell.spark.runtime.java import find_java
from harebell.spark.runtime.spark_home_cache import find_cache, make_overlay
from tests.patience import eventually
from tests.spark.families import family
from tests.spark.standalone import standalone
from tests.spark.test_writer import taken, waiting

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]

ROWS = 5_000
PATIENCE_S = 600.0
DRIVER = Path(__file__).with_name("cluster_driver.py")
PACKAGES = Path(sysconfig.get_path("purelib"))
SOURCE = Path(harebell.__file__).parents[1]


def clean(**more: str) -> dict[str, str]:
    """An environment in which nobody has said where Harebell or Spark is."""
    unsaid = ("PYTHONPATH", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
    kept = {name: value for name, value in os.environ.items() if name not in unsaid}
    return kept | {"SPARK_LOCAL_IP": "127.0.0.1"} | more


def linked(directory: Path, *names: str) -> Path:
    """A directory with links to some installed packages."""
    directory.mkdir()
    for name in names:
        if (PACKAGES / name).exists():
            (directory / name).symlink_to(PACKAGES / name)
    return directory


def bare_python(directory: Path) -> Path:
    """A Python that has what Spark needs and nothing else."""
    spark = linked(directory / "spark-only", "pyspark", "py4j", "pyarrow", "numpy", "pyarrow.libs")
    program = directory / "python"
    program.write_text(
        f'#!/bin/sh\nexport PYTHONPATH="$PYTHONPATH:{spark}"\nexec {sys.executable} -S "$@"\n'
    )
    program.chmod(0o755)
    return program


class Driven:
    """What a driver on a cluster has done.

    Args:
        directory: for its files.
        url: of the broker.
        source: the queue that it fills and empties.
        target: the queue that the messages are in afterwards.
    """

    def __init__(self, directory: Path, url: str, source: str, target: str) -> None:
        self._directory = directory
        self._words = (url, source, target, str(ROWS), str(directory / "checkpoint"))
        self.printed = ""

    def run(self, master: str, **environment: str) -> None:
        """Run the driver to its end."""
        log = self._directory / "driver.log"
        command = [sys.executable, str(DRIVER), master, *self._words]
        with family(command, log, clean(**environment), self._directory) as driver:
            ended = eventually(lambda: driver.poll() is not None, PATIENCE_S)
        self.printed = log.read_text()
        assert ended, self.printed[-4_000:]
        assert driver.returncode == 0, self.printed[-4_000:]

    def executors(self) -> list[list[str]]:
        """Of each task that told it: its directory, its Harebell, and which implementation."""
        lines = [line for line in self.printed.splitlines() if line.startswith("executor: ")]
        assert len(lines) == 4, self.printed
        return [line.split(" ")[1:] for line in lines]


@pytest.fixture
def target(channel: Any, queue: str) -> Iterator[str]:
    """A second queue; there is a stream beside it."""
    name, log = f"{queue}.target", f"{queue}.log"
    channel.queue_declare(name, durable=True)
    channel.queue_declare(log, durable=True, arguments={"x-queue-type": "stream"})
    yield name
    for each in (name, log):
        channel.connection.channel().queue_delete(each)


@pytest.fixture
def driven(broker_url: str, queue: str, target: str, tmp_path: Path) -> Driven:
    return Driven(tmp_path, broker_url, queue, target)


def assert_moved_once(driven: Driven, channel: Any, source: str, target: str) -> None:
    assert "micro-batches: [2500, 2500]" in driven.printed
    assert waiting(channel, source) == 0
    # The second half comes from the stream.
    assert sorted(int(body) for _, _, body in taken(channel, target)) == list(range(2 * ROWS))


def test_executors_of_a_standalone_cluster_get_harebell_from_the_session(
    driven: Driven, channel: Any, queue: str, target: str, tmp_path: Path
) -> None:
    with standalone(tmp_path, clean()) as master:
        # The processes of the driver's machine have Harebell, those of the workers have not.
        needed = linked(tmp_path / "needed", "msgspec", "google_crc32c", "google_crc32c.libs")
        bare = str(bare_python(tmp_path))
        driven.run(master, PYTHONPATH=f"{SOURCE}:{needed}", PYSPARK_PYTHON=bare)
    told = driven.executors()
    assert len({directory for directory, _, _ in told}) == 2, told
    for directory, file, implementation in told:
        assert Path(directory).is_relative_to(tmp_path / "work")
        assert implementation == chosen(), "compiled modules are carried, too"
        assert file == f"{directory}/harebell_package/harebell/__init__.py"
    assert_moved_once(driven, channel, queue, target)


@pytest.mark.soak
def test_the_executors_of_a_local_cluster_read_and_write(
    driven: Driven, channel: Any, queue: str, target: str, tmp_path: Path
) -> None:
    # Executors have their directories in Spark's own, which is not the tests' to fill.
    home = make_overlay(replace(find_cache(find_java()), directory=tmp_path / "places"))
    driven.run("local-cluster[2,1,1024]", PYTHONPATH=str(SOURCE), SPARK_HOME=str(home))
    assert len({directory for directory, _, _ in driven.executors()}) == 2
    assert_moved_once(driven, channel, queue, target)
