"""Spark Connect for real: a server in a process of its own, and a program that uses Harebell on it.

Needs the packages of `pyspark[connect]`; without them the driver fails, and says which.
"""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harebell.spark.runtime.spark_home_cache import installed_spark
from tests.patience import eventually
from tests.ports import free_port
from tests.running import command
from tests.spark.families import family
from tests.spark.test_clusters import PATIENCE_S, SOURCE, bare_python, clean, linked
from tests.spark.test_writer import taken, waiting

pytestmark = [pytest.mark.spark, pytest.mark.timeout(1_200)]

ROWS = 5_000
DRIVER = Path(__file__).with_name("connect_driver.py")
_SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=10.0).close()
    except OSError:
        return False
    return True


@contextmanager
def server(directory: Path, *packages: Path) -> Iterator[str]:
    """The address of a server whose Python has what Spark needs, and these packages.

    Args:
        directory: for its files.
        packages: directories of packages.
    """
    port = free_port()
    settings = {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.ui.enabled": "false",
    }
    words = [str(installed_spark() / "bin" / "spark-submit"), "--class", _SERVER]
    words += ["--master", "local[2]"]
    for name, value in settings.items():
        words += ["--conf", f"{name}={value}"]
    environment = clean(
        SPARK_HOME=str(installed_spark()),
        PYSPARK_PYTHON=str(bare_python(directory)),
        PYTHONPATH=":".join(map(str, packages)),
    )
    log = directory / "server.log"
    with family([*words, "spark-internal"], log, environment, directory) as process:
        up = eventually(lambda: listens(port) or process.poll() is not None, PATIENCE_S)
        assert up, log.read_text()[-4_000:]
        assert process.poll() is None, log.read_text()[-4_000:]
        yield f"sc://127.0.0.1:{port}"


def driven(master: str, directory: Path, url: str, source: str, target: str) -> list[str]:
    """The lines of the driver, run to its end."""
    words = [master, url, source, target, str(ROWS), str(directory / "checkpoint")]
    return run([sys.executable, str(DRIVER), *words], directory)


def asking(directory: Path, *words: str) -> list[str]:
    """The lines of the command `harebell`."""
    return run([command(), *words], directory)


def run(words: list[str], directory: Path) -> list[str]:
    """The lines that a program prints."""
    log = directory / f"{Path(words[1]).stem}.log"
    with family(words, log, clean(PYTHONPATH=str(SOURCE)), directory) as process:
        ended = eventually(lambda: process.poll() is not None, PATIENCE_S)
    printed = log.read_text()
    assert ended, printed[-4_000:]
    assert process.returncode == 0, printed[-4_000:]
    return printed.splitlines()


@pytest.fixture
def needed(tmp_path: Path) -> Path:
    """The compiled packages that Harebell stands on."""
    return linked(tmp_path / "needed", "msgspec", "google_crc32c", "google_crc32c.libs")


@pytest.fixture
def target(channel: Any, queue: str) -> Iterator[str]:
    """A second queue."""
    name = f"{queue}.target"
    channel.queue_declare(name, durable=True)
    yield name
    channel.connection.channel().queue_delete(name)


def test_a_server_that_has_harebell_moves_a_queue_exactly_once(
    broker_url: str, channel: Any, queue: str, target: str, needed: Path, tmp_path: Path
) -> None:
    with server(tmp_path, SOURCE, needed) as master:
        lines = driven(master, tmp_path, broker_url, queue, target)
        question = f"SELECT count(DISTINCT value) AS n FROM queue('{target}')"
        requested = asking(tmp_path, "sql", question, "--url", broker_url, "--master", master)
    # Warnings of Spark may come before it and, when its threads end late, after it.
    assert requested[requested.index("n") + 1] == str(ROWS), requested
    assert "session: pyspark.sql.connect.session" in lines
    assert f"looked at: {ROWS}" in lines
    assert "micro-batches: 2" in lines, lines
    assert waiting(channel, queue) == 0
    assert sorted(int(body) for _, _, body in taken(channel, target)) == list(range(ROWS))


def test_a_server_without_harebell_gets_it_for_batches_and_says_that_streams_need_more(
    broker_url: str, channel: Any, queue: str, target: str, needed: Path, tmp_path: Path
) -> None:
    with server(tmp_path, needed) as master:
        lines = driven(master, tmp_path, broker_url, queue, target)
    assert f"looked at: {ROWS}" in lines
    assert waiting(channel, queue) == ROWS
    assert waiting(channel, target) == 0
    executors = [line for line in lines if line.startswith("executor: ")]
    assert len(executors) == 1, lines
    assert ".zip/harebell/__init__.py python" in executors[0], "it came as an artifact"
    said = [line for line in lines if "a streaming query over Spark Connect needs Harebell" in line]
    assert said, lines
    assert "pip install 'harebell[spark]'" in said[0]
