"""Dramatiq: its worker takes tasks, delays them, retries them, and buries what never succeeds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dramatiq
import pika
import pytest
from dramatiq.brokers.rabbitmq import RabbitmqBroker

from tests.interop.clients.processes import Application
from tests.patience import eventually
from tests.running import RunningBroker

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

_MODULE = "tests.interop.clients.dramatiq_app"


def _url(broker: RunningBroker) -> str:
    return f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F"


def _worker(broker: RunningBroker, directory: Path) -> Application:
    # One process with one thread: what runs first is what was delivered first.
    command = [sys.executable, "-m", "dramatiq", _MODULE, "--processes", "1", "--threads", "1"]
    return Application(command, "Worker process is ready for action.", directory, _url(broker))


@pytest.fixture
def asking(broker: RunningBroker) -> Iterator[RabbitmqBroker]:
    """The application's side that sends tasks."""
    sender = RabbitmqBroker(url=_url(broker), confirm_delivery=True, max_priority=10)
    for queue in ("default", "in-order"):
        sender.declare_queue(queue, ensure=True)
        sender.flush_all()
    yield sender
    sender.close()


@contextmanager
def _working(broker: RunningBroker, directory: Path) -> Iterator[Application]:
    worker = _worker(broker, directory)
    try:
        worker.start()
        yield worker
        assert worker.stop() == 0
        assert "CRITICAL" not in worker.log
    finally:
        worker.kill()


def _task(
    actor: str, *arguments: object, queue: str = "default", **options: object
) -> dramatiq.Message:
    return dramatiq.Message(
        queue_name=queue, actor_name=actor, args=arguments, kwargs={}, options=options
    )


def test_a_worker_runs_tasks_pipelines_and_what_is_delayed(
    broker: RunningBroker, asking: RabbitmqBroker, tmp_path: Path
) -> None:
    with _working(broker, tmp_path) as worker:
        for number in range(20):
            asking.enqueue(_task("note", "many", str(number)))
        assert worker.wait_for_marks("many", 20) == [str(number) for number in range(20)]
        steps = [_task("letters", 300_000), _task("note_after", "letters")]
        dramatiq.pipeline(steps, broker=asking).run()
        assert worker.wait_for_marks("letters", 1) == ["x" * 300_000]
        asking.enqueue(_task("note_time", "hours later"), delay=36_000_000)
        started = time.time()
        asking.enqueue(_task("note_time", "late"), delay=1_000)
        asking.enqueue(_task("note_time", "soon"))
        worker.wait_for_marks("soon", 1)
        (late,) = worker.wait_for_marks("late", 1)
        # Dramatiq counts in milliseconds.
        assert float(late) - started >= 0.99
        assert worker.marks("hours later") == []


def test_a_task_that_never_succeeds_is_retried_and_then_buried(
    broker: RunningBroker, asking: RabbitmqBroker, tmp_path: Path
) -> None:
    with _working(broker, tmp_path) as worker:
        asking.enqueue(_task("fail", "hopeless"))
        assert worker.wait_for_marks("hopeless", 3) == ["tried"] * 3
        connection = pika.BlockingConnection(pika.URLParameters(_url(broker)))
        channel = connection.channel()
        buried: list[bytes] = []

        def dug() -> bool:
            _, properties, body = channel.basic_get("default.XQ", auto_ack=True)
            if body is not None:
                assert properties.headers["x-death"][0]["reason"] == "rejected"
                buried.append(body)
            return bool(buried)

        assert eventually(dug), worker.log
        assert dramatiq.get_encoder().decode(buried[0])["args"] == ["hopeless"]
        connection.close()
        assert worker.marks("hopeless") == ["tried"] * 3


def test_tasks_of_higher_priority_run_first(
    broker: RunningBroker, asking: RabbitmqBroker, tmp_path: Path
) -> None:
    for priority in (1, 9, 5, 1, 9):
        asking.enqueue(_task("in_order", str(priority), queue="in-order", broker_priority=priority))
    with _working(broker, tmp_path) as worker:
        # Dramatiq's worker sorts what it fetched ahead by a priority of its own, which is equal.
        assert worker.wait_for_marks("in-order", 5) == ["9", "9", "5", "1", "1"]


def test_the_task_of_a_killed_worker_is_run_by_the_next(
    broker: RunningBroker,
    asking: RabbitmqBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worker = _worker(broker, tmp_path)
    try:
        worker.start()
        asking.enqueue(_task("survive", "survivor"))
        worker.wait_for_marks("survivor", 1)
        worker.kill()
        monkeypatch.setenv("DRAMATIQ_TEST_SECOND", "1")
        worker.start()
        assert len(worker.wait_for_marks("survivor", 2)) == 2
        assert worker.stop() == 0
    finally:
        worker.kill()
