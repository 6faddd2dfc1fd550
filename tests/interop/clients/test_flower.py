"""Flower watches a Celery worker, and reads the lengths of its queues over the HTTP API."""

from __future__ import annotations

import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.interop.clients.processes import MARKS_VARIABLE, URL_VARIABLE
from tests.interop.clients.test_celery import Worker
from tests.patience import eventually
from tests.ports import free_port
from tests.running import environment, running_broker

pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
_START_SECONDS = 180.0


class Flower:
    """A Flower process.

    Args:
        broker: the URL of the broker.
        api: the URL of its HTTP API.
        log: the file for what the process prints.
    """

    def __init__(self, broker: str, api: str, log: Path) -> None:
        self._port = free_port()
        self._log = log
        about = {
            URL_VARIABLE: broker,
            MARKS_VARIABLE: str(log.parent),
            "FLOWER_UNAUTHENTICATED_API": "true",
        }
        flags = ["flower", "--address=127.0.0.1", f"--port={self._port}", f"--broker-api={api}"]
        with log.open("wb") as out:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "celery", "-A", "tests.interop.clients.celery_app", *flags],
                cwd=ROOT,
                env=environment(about),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
            )

    def get(self, path: str) -> Any:
        """The JSON of an answer; None while Flower does not answer."""
        assert self._process.poll() is None, self._log.read_text()
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._port}{path}") as answer:
                return msgspec.json.decode(answer.read())
        except OSError:
            return None

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.wait(_START_SECONDS)


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[tuple[Worker, Flower]]:
    """A worker, and Flower beside it."""
    port = free_port()
    with running_broker("--management-port", str(port)) as broker:
        worker = Worker(broker.port, tmp_path)
        url = f"amqp://guest:guest@127.0.0.1:{broker.port}//"
        try:
            worker.start()
            api = f"http://guest:guest@127.0.0.1:{port}/api/"
            with closing(Flower(url, api, tmp_path / "flower.log")) as flower:
                yield worker, flower
        finally:
            worker.kill()
            worker.close()


def test_flower_shows_the_worker_and_the_length_of_its_queue(
    watched: tuple[Worker, Flower],
) -> None:
    worker, flower = watched

    def consumed() -> list[list[str]]:
        # Flower waits a second for what a worker says, and leaves out what comes later.
        workers = flower.get("/api/workers?refresh=1") or {}
        queues = [about.get("active_queues", ()) for about in workers.values()]
        return [[queue["name"] for queue in each] for each in queues]

    assert eventually(lambda: consumed() == [["celery-interop"]], _START_SECONDS), consumed()
    for number in range(3):
        worker.task("add", number, 1).apply_async(countdown=600)

    def lengths() -> dict[str, int]:
        found = flower.get("/api/queues/length") or {}
        return {queue["name"]: queue["messages"] for queue in found.get("active_queues", ())}

    assert eventually(lambda: lengths().get("celery-interop") == 3), lengths()
