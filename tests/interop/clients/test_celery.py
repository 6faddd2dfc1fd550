"""Celery: a real prefork worker takes tasks from the broker and sends its results back through it.

One worker with the rpc:// backend (results are messages, too) serves most tests.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pika
import pytest
from celery import Celery, Signature, chain, uuid
from celery.exceptions import TaskRevokedError
from kombu import pools

from tests.interop.clients.brokers import own_broker
from tests.interop.clients.celery_app import BACKEND, KIND_VARIABLE, KINDS
from tests.interop.clients.processes import PATIENCE_SECONDS, Application
from tests.patience import eventually
from tests.ports import free_port
from tests.running import RunningBroker

pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

_MODULE = "tests.interop.clients.celery_app"
_CONCURRENCY = 2


class Worker(Application):
    """A Celery worker process and an application that talks to it.

    Args:
        port: the broker's.
        directory: for its log, its marks and results in files.
        kind: of the queue, of `KINDS`.
    """

    def __init__(self, port: int, directory: Path, kind: str = "") -> None:
        broker = f"amqp://guest:guest@127.0.0.1:{port}//"
        count = 1 if kind == "priority" else _CONCURRENCY
        command = [sys.executable, "-m", "celery", "-A", _MODULE, "worker", "--loglevel=INFO"]
        command += ["--concurrency", str(count), "-n", "interop@localhost"]
        if kind == "shared":
            command += ["-Q", "bulk,urgent"]
        # Celery warns of root otherwise.
        about = {KIND_VARIABLE: kind, "C_FORCE_ROOT": "1"}
        super().__init__(command, " ready.", directory, broker, about, start_seconds=180.0)
        self.app = Celery("asking", broker=broker, backend=BACKEND)
        self.app.conf.update(KINDS[kind], broker_connection_timeout=PATIENCE_SECONDS)

    def close(self) -> None:
        """Close the connections of the application on this side."""
        consumer = getattr(self.app.backend, "result_consumer", None)
        if consumer is not None and consumer._connection is not None:
            consumer.stop()
        pools.reset()
        self.app.close()

    def task(self, name: str, *arguments: Any) -> Signature:
        """A task by name, with its arguments."""
        return self.app.signature(f"{_MODULE}.{name}", args=arguments, immutable=name == "touch")


@contextmanager
def _working(port: int, directory: Path, kind: str = "") -> Iterator[Worker]:
    worker = Worker(port, directory, kind)
    try:
        worker.start()
        yield worker
    finally:
        worker.kill()
        worker.close()


@pytest.fixture(scope="module")
def shared_worker(
    shared_broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Worker]:
    directory = tmp_path_factory.mktemp("celery")
    with _working(shared_broker.port, directory) as worker:
        yield worker
        assert worker.stop() == 0
        assert "CRITICAL" not in worker.log


@pytest.fixture
def worker(broker: RunningBroker, shared_worker: Worker) -> Worker:
    """The module's worker; `broker` checks the broker's log after each test."""
    return shared_worker


def _get(result: Any) -> Any:
    return result.get(timeout=PATIENCE_SECONDS)


def test_task_runs_and_its_result_comes_back(worker: Worker) -> None:
    assert _get(worker.task("add", 2, 3).delay()) == 5


def test_chain_passes_results_on(worker: Worker) -> None:
    steps = chain(worker.task("add", 1, 1), worker.task("add", 10), worker.task("add", 100))
    assert _get(steps.apply_async()) == 112


def test_tasks_held_back_do_not_stop_the_others(worker: Worker) -> None:
    """A worker raises its prefetch for each task that waits, or its prefetch would be used up."""
    wait = worker.task("touch", "waiting")
    held = [wait.apply_async(countdown=600) for _ in range(4 * _CONCURRENCY + 4)]
    results = [worker.task("add", number, 1).delay() for number in range(5)]
    assert [_get(result) for result in results] == [1, 2, 3, 4, 5]
    assert worker.marks("waiting") == []
    worker.app.control.revoke([result.id for result in held])


def test_revoked_task_does_not_run(worker: Worker) -> None:
    control, task_id = worker.app.control, uuid()
    # Before it is sent: afterwards it could be late, however long the task waits.
    replies = control.revoke(task_id, reply=True, timeout=PATIENCE_SECONDS, limit=1)
    assert replies[0]["interop@localhost"]["ok"]
    result = worker.task("touch", "revoked").apply_async(task_id=task_id)
    with pytest.raises(TaskRevokedError):
        _get(result)
    assert worker.marks("revoked") == []


def test_task_of_a_killed_worker_is_delivered_to_the_next(tmp_path: Path) -> None:
    with own_broker() as own, _working(own.port, tmp_path) as worker:
        result = worker.task("survive", "survivor").delay()
        worker.wait_for_marks("survivor", 1)
        worker.kill()
        worker.start()
        assert _get(result) is True
        assert len(worker.marks("survivor")) == 2


def test_worker_takes_tasks_again_after_a_restart_of_the_broker(tmp_path: Path) -> None:
    port = free_port()
    worker = Worker(port, tmp_path)
    try:
        with own_broker("--port", str(port)) as first:
            worker.start()
            assert _get(worker.task("add", 1, 1).delay()) == 2
            worker.close()
            first.process.kill()
        with own_broker("--port", str(port)):
            assert eventually(lambda: worker.log.count("Connected to amqp") >= 2), worker.log
            asking = Worker(port, tmp_path)
            assert _get(asking.task("add", 20, 22).delay()) == 42
            asking.close()
            assert worker.stop() == 0
    finally:
        worker.kill()


def test_quorum_queues_are_detected_and_delays_go_through_the_broker(tmp_path: Path) -> None:
    """With them a worker sets no prefetch for all its consumers, and holds nothing back itself."""
    with own_broker() as own, _working(own.port, tmp_path, "quorum") as worker:
        assert _get(worker.task("add", 2, 3).delay()) == 5
        assert eventually(lambda: "Global QoS is disabled" in worker.log), worker.log
        started = time.time()
        worker.task("touch", "late").apply_async(countdown=3)
        # Ten minutes are 512 seconds in one queue before they are anything else.
        worker.task("touch", "never").apply_async(countdown=600)
        with pika.BlockingConnection(pika.ConnectionParameters(port=own.port)) as connection:
            channel = connection.channel()

            def waiting() -> int:
                queue = channel.queue_declare("celery_delayed_9", passive=True)
                count: int = queue.method.message_count
                return count

            assert eventually(lambda: waiting() == 1), worker.log
        assert _get(worker.task("add", 1, 1).delay()) == 2
        assert float(worker.wait_for_marks("late", 1)[0]) - started >= 2.99
        assert worker.stop() == 0


def test_tasks_of_higher_priority_run_first(tmp_path: Path) -> None:
    with own_broker() as own:
        worker = Worker(own.port, tmp_path, "priority")
        try:
            # The queue has to be there before the worker is.
            for number, priority in enumerate((1, 5, 9, 5, 1)):
                worker.task("note", "order", number).apply_async(priority=priority)
            worker.start()
            assert eventually(lambda: len(worker.marks("order")) == 5), worker.log
            assert worker.marks("order") == ["2", "1", "3", "0", "4"]
            assert worker.stop() == 0
        finally:
            worker.kill()
            worker.close()


def test_an_urgent_queue_is_not_behind_the_backlog_of_another(tmp_path: Path) -> None:
    """`celery worker -Q bulk,urgent` has one prefetch for both, which they use in turns."""
    with own_broker() as own:
        worker = Worker(own.port, tmp_path, "shared")
        for number in range(1_000):
            name = "note_and_urge" if number == 100 else "note"
            worker.task(name, "order", number).apply_async(ignore_result=True)
        try:
            worker.start()
            assert eventually(lambda: len(worker.marks("order")) == 1_001), worker.log
            order = worker.marks("order")
            # Behind the backlog there would be 899 others between the two.
            assert order.index("-1") - order.index("100") < 450
            assert worker.stop() == 0
        finally:
            worker.kill()
            worker.close()
