"""Tasks wait where a limit allows no more connections: the broker's, or `maxConnections`."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import SparkFiles

from harebell.client import blocking
from harebell.client.errors import closed_connection
from harebell.spark import connection_limits
from harebell.spark.connection_limits import NoConnectionFree, is_full
from harebell.spark.limits import SPARK_IDLE_CONNECTION_SECONDS
from harebell.spark.reading.rows import task_connections
from harebell.spark.source import QueueSource
from tests.patience import eventually
from tests.running import RunningBroker, command, running_broker
from tests.spark.asking import BODIES
from tests.spark.hasty import Hasty
from tests.spark.tasks import Query
from tests.spark.test_writer import TEXTS, texts

ROWS = 40
PATIENT = {"connectionWait": "120s"}
SHORT = {"connectionWait": "300ms"}


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as made:
        with blocking.connect(made.url) as connection:
            channel = connection.channel()
            channel.declare_queue("limited", durable=True)
            channel.publish_many([b"%d" % n for n in range(ROWS)], routing_key="limited")
        yield made


@pytest.fixture
def executor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """This process is a worker of an executor with this directory."""
    monkeypatch.setattr(SparkFiles, "_root_directory", str(tmp_path))
    monkeypatch.setattr(SparkFiles, "_is_running_on_worker", True)
    return tmp_path


@pytest.fixture
def limit(broker: RunningBroker) -> Iterator[Callable[[int], None]]:
    """Sets the broker's limit of connections of the user."""

    def change(maximum: int) -> None:
        words = ["limits", "set", "--user", "guest", "--max-connections", str(maximum)]
        at = ["--data-dir", str(broker.data_dir)]
        subprocess.run([command(), *words, *at], check=True, capture_output=True)

    yield change
    change(-1)


class Reading:
    """A batch read of the queue in several tasks, which are read one row at a time."""

    def __init__(self, broker: RunningBroker, **options: str) -> None:
        given = {"url": broker.url, "queue": "limited", "minPartitions": "4", "rowsPerBatch": "1"}
        self._reader = QueueSource(given | options).reader(BODIES)
        self._parts = self._reader.partitions()
        assert len(self._parts) == 4

    def task(self, part: int) -> Iterator[pa.RecordBatch]:
        return iter(self._reader.read(self._parts[part]))


def bodies(task: Iterator[pa.RecordBatch]) -> list[int]:
    return [int(body) for batch in task for body in batch["value"].to_pylist()]


class InThread:
    """A task in a thread of its own."""

    def __init__(self, run: Callable[[], Any]) -> None:
        self.found: Any = None
        self._run = run
        self._thread = threading.Thread(target=self._keep, daemon=True)
        self._thread.start()

    def _keep(self) -> None:
        try:
            self.found = self._run()
        except Exception as error:
            self.found = error

    def waits(self, seconds: float = 0.5) -> bool:
        self._thread.join(seconds)
        return self._thread.is_alive()

    def end(self) -> Any:
        self._thread.join(120)
        assert not self._thread.is_alive()
        return self.found


def test_a_task_waits_for_a_connection_that_the_broker_allows(
    broker: RunningBroker, limit: Callable[[int], None]
) -> None:
    reading = Reading(broker, groupIdPrefix="one", **PATIENT)
    with blocking.connect(broker.url):
        limit(1)
        other = InThread(lambda: bodies(reading.task(0)))
        assert other.waits()
    assert other.end() == list(range(10))


def test_a_task_that_waits_too_long_says_which_limit_it_was(
    broker: RunningBroker, limit: Callable[[int], None]
) -> None:
    reading = Reading(broker, groupIdPrefix="two", **SHORT)
    with blocking.connect(broker.url):
        limit(1)
        with pytest.raises(NoConnectionFree) as caught:
            bodies(reading.task(0))
    text = str(caught.value)
    assert "allowed no more connections for 0.3 s (connectionWait)" in text
    assert "user connection limit (1) is reached" in text
    assert "harebell limits set" in text
    assert "maxConnections" in text


def test_a_task_that_writes_waits_too(broker: RunningBroker, limit: Callable[[int], None]) -> None:
    query = Query({"url": broker.url, "exchange": ""} | PATIENT, TEXTS, "waits", "run")
    with blocking.connect(broker.url):
        limit(1)
        writing = InThread(lambda: query.write(1, 0, texts("limited", 0, 5)))
        assert writing.waits()
    done = writing.end()
    assert done.rows == 5
    query.abort(1, done)


def test_a_driver_waits_as_long_as_for_an_answer(
    broker: RunningBroker, limit: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection_limits, "time", Hasty())
    with blocking.connect(broker.url):
        limit(1)
        with pytest.raises(NoConnectionFree, match=r"for 60 s \(fetchTimeout\)"):
            Reading(broker, fetchTimeout="60s")


def test_a_connection_that_no_task_uses_is_closed(
    broker: RunningBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = Reading(broker, groupIdPrefix="idle")
    with monkeypatch.context() as patient:
        patient.setattr(task_connections, "SPARK_IDLE_CONNECTION_SECONDS", 86_400.0)
        bodies(reading.task(1))
        assert "idle: task" in names(broker)
    bodies(reading.task(2))
    assert eventually(lambda: "idle: task" not in names(broker)), SPARK_IDLE_CONNECTION_SECONDS


def names(broker: RunningBroker) -> list[str]:
    words = [command(), "connections", "list", "--json", "--data-dir", str(broker.data_dir)]
    listed = subprocess.run(words, check=True, capture_output=True).stdout
    return [str(each["client_properties"].get("connection_name")) for each in json.loads(listed)]


def test_of_an_executors_tasks_as_many_are_connected_as_it_may_have(
    broker: RunningBroker, executor: Path
) -> None:
    reading = Reading(broker, maxConnections="2", groupIdPrefix="capped", **PATIENT)
    first, second = reading.task(0), reading.task(1)
    found = bodies(iter([next(first), next(second)]))
    others = [InThread(lambda part=part: bodies(reading.task(part))) for part in (2, 3)]
    assert all(other.waits() for other in others)
    assert names(broker).count("capped: task") == 2
    # When a task has ended, another one goes on; the second one is still under way.
    found += bodies(first) + others[0].end() + others[1].end()
    found += bodies(second)
    assert sorted(found) == list(range(ROWS))
    # A connection that was closed is listed until its socket has ended, too.
    assert eventually(lambda: names(broker).count("capped: task") == 0)
    assert [path.name[:20] for path in executor.iterdir()] == ["harebell-connections"]


def test_a_task_that_waits_too_long_for_another_says_so(
    broker: RunningBroker, executor: Path
) -> None:
    reading = Reading(broker, maxConnections="1", **SHORT)
    first = reading.task(0)
    next(first)
    with pytest.raises(NoConnectionFree, match=r"waited 0\.3 s \(connectionWait\) for one of the"):
        bodies(reading.task(1))
    first.close()  # type: ignore[attr-defined]
    assert bodies(reading.task(1)) == list(range(10, 20))


def test_a_task_that_is_killed_holds_up_no_other(broker: RunningBroker, executor: Path) -> None:
    reading = Reading(broker, maxConnections="1", **PATIENT)
    program = (
        "import sys; from pathlib import Path; from pyspark import SparkFiles\n"
        f"SparkFiles._root_directory, SparkFiles._is_running_on_worker = {str(executor)!r}, True\n"
        "from harebell.client.url import URL\n"
        "from harebell.spark.reading.rows import task_connections as tasks\n"
        "settings = tasks.ConnectionSettings(30.0, 'killed', 1, 60.0)\n"
        f"with tasks.task_connection(URL.of({broker.url!r}), settings):\n"
        "    print('holds', flush=True); sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as killed:
        assert killed.stdout is not None
        assert killed.stdout.readline() == b"holds\n"
        other = InThread(lambda: bodies(reading.task(3)))
        assert other.waits()
        killed.kill()
        assert other.end() == list(range(30, 40))


def test_the_texts_of_rabbitmq_count_as_limits() -> None:
    for text in (
        "NOT_ALLOWED - access to vhost '/' refused for user 'guest': connection limit (1) is "
        "reached",
        "NOT_ALLOWED - connection refused for user 'guest': user connection limit (1) is reached",
    ):
        assert is_full(closed_connection(530, text, 10, 40))
    assert not is_full(closed_connection(530, "NOT_ALLOWED - vhost x not found", 10, 40))
