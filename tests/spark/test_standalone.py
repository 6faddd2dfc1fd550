"""A standalone cluster whose executors die, come and go, or do the same work twice: rows come once.

The queries read a queue and a stream and write exactly once into one queue. Each task of an
executor may wait for the connection of another one (`maxConnections`).
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harebell.client import blocking
from tests.patience import eventually
from tests.running import RunningBroker, running_broker
from tests.spark.families import family
from tests.spark.standalone import standalone
from tests.spark.standalone_driver import KINDS
from tests.spark.test_clusters import PATIENCE_S, SOURCE, clean

pytestmark = [pytest.mark.spark, pytest.mark.soak, pytest.mark.timeout(1_800)]

ROWS = 2_000
DRIVER = Path(__file__).with_name("standalone_driver.py")


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as made:
        yield made


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("standalone")
    environment = clean(PYTHONPATH=str(SOURCE), PYSPARK_PYTHON=sys.executable)
    with standalone(directory, environment, cores=2, memory="700m") as made:
        yield made


class Scenario:
    """A scenario of the driver, with its queues.

    Args:
        name: of the scenario.
        broker: that has the queues.
        directory: of the driver.
    """

    def __init__(self, name: str, broker: RunningBroker, directory: Path) -> None:
        self._name = name
        self._broker = broker
        self.directory = directory
        with blocking.connect(broker.url) as connection:
            channel = connection.channel()
            channel.declare_queue(f"{name}.queue", durable=True)
            channel.declare_queue(f"{name}.target", durable=True)
            stream = {"x-queue-type": "stream"}
            channel.declare_queue(f"{name}.stream", durable=True, arguments=stream)
        self.published = 0
        self.publish()

    def publish(self) -> None:
        """More numbers into the queue and the stream."""
        end = self.published + ROWS
        bodies = [b"%d" % number for number in range(self.published, end)]
        with blocking.connect(self._broker.url) as connection:
            for kind in KINDS:
                connection.channel().publish_many(bodies, routing_key=f"{self._name}.{kind}")
        self.published = end

    @contextmanager
    def driver(self, master: str) -> Iterator[subprocess.Popen[bytes]]:
        """The driver, which has ended well at the end."""
        words = [sys.executable, str(DRIVER), master, self._broker.url, self._name, str(ROWS)]
        environment = clean(PYTHONPATH=f"{SOURCE}:{SOURCE.parent}", PYSPARK_PYTHON=sys.executable)
        with family([*words, str(self.directory)], self._log, environment, self.directory) as made:
            yield made
            ended = eventually(lambda: made.poll() is not None, PATIENCE_S)
            assert ended, self.printed[-4_000:]
            assert made.returncode == 0, self.printed[-4_000:]

    @property
    def _log(self) -> Path:
        return self.directory / "driver.log"

    @property
    def printed(self) -> str:
        """What the driver has printed."""
        return self._log.read_text()

    def executors(self) -> list[int]:
        """The numbers of executors that the driver has printed."""
        lines = self.printed.splitlines()
        return [int(line.split()[1]) for line in lines if line.startswith("executors: ")]

    def attempts(self, end: str) -> set[str]:
        """The attempts of tasks whose names end like this."""
        return {each.name for each in (self.directory / "attempts").glob(f"*-{end}")}

    def assert_moved_once(self) -> None:
        """Every row is in the target once, and the queue is empty."""
        numbers = range(self.published)
        expected = sorted(f"{kind} {number}".encode() for kind in KINDS for number in numbers)
        with blocking.connect(self._broker.url) as connection:
            channel = connection.channel()
            found = []
            while (message := channel.get(f"{self._name}.target", no_ack=True)) is not None:
                found.append(bytes(message.body))
            assert sorted(found) == expected, (len(found), len(set(found)), len(expected))
            assert channel.declare_queue(f"{self._name}.queue", passive=True).message_count == 0


def test_an_executor_that_is_killed_in_a_micro_batch_neither_loses_nor_doubles_rows(
    master: str, broker: RunningBroker, tmp_path: Path
) -> None:
    scenario = Scenario("killed", broker, tmp_path)
    with scenario.driver(master) as driver:
        named = tmp_path / "executor"
        assert eventually(lambda: named.exists() or driver.poll() is not None, PATIENCE_S)
        os.kill(int(named.read_text()), signal.SIGKILL)
    again = scenario.attempts("1")
    assert "queue-1-0-1" in again, "the task was tried again on another executor"
    assert "queue-1-0-0-done" not in scenario.attempts("done")
    scenario.assert_moved_once()


def test_two_attempts_of_a_task_neither_lose_nor_double_rows(
    master: str, broker: RunningBroker, tmp_path: Path
) -> None:
    scenario = Scenario("twice", broker, tmp_path)
    with scenario.driver(master):
        pass
    for kind in KINDS:
        assert {f"{kind}-1-0-0", f"{kind}-1-0-1"} <= scenario.attempts("0") | scenario.attempts("1")
    scenario.assert_moved_once()


def test_executors_that_come_and_go_neither_lose_nor_double_rows(
    master: str, broker: RunningBroker, tmp_path: Path
) -> None:
    scenario = Scenario("dynamic", broker, tmp_path)
    with scenario.driver(master) as driver:
        idle = tmp_path / "idle"
        assert eventually(lambda: idle.exists() or driver.poll() is not None, PATIENCE_S)
        scenario.publish()
        (tmp_path / "more").touch()
    first, between, second = scenario.executors()
    assert first >= 1
    assert between == 0
    assert second >= 1
    scenario.assert_moved_once()
