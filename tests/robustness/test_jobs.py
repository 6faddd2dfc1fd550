"""A broker that is killed in the middle of a job goes on with it, and loses and doubles nothing."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harebell.client.blocking import connect
from harebell.management.control.client import ask_command, ask_rows
from tests.patience import SECONDS, eventually
from tests.running import RunningBroker

COUNTS = (20_000, 100_000, 500_000)
"""Messages; the next number is tried if a job was over before its broker could be killed."""
KILLS = 3
FIELDS: dict[str, dict[str, Any]] = {
    "move": {"to_queue": "target"},
    "copy": {"to_queue": "target"},
    "retry": {"headers": {"tenant": "eu"}},
    "discard": {"hold": "target", "reason": "known fault"},
}


def show(data_dir: Path, number: int) -> dict[str, Any]:
    row: dict[str, Any] = ask_command(data_dir, "jobs.show", {"id": number}, SECONDS)
    return row


def bodies(data_dir: Path, queue: str) -> list[int]:
    """The bodies of a queue, in its order."""
    batches = ask_rows(data_dir, "queues.browse", {"name": queue}, SECONDS)
    return [int(row["payload"]) for rows in batches for row in rows]


Start = Callable[[Path], RunningBroker]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts a broker on a directory; those that still run are killed at the end."""
    with ExitStack() as started:

        def begin(data_dir: Path) -> RunningBroker:
            broker = RunningBroker("--data-dir", str(data_dir))
            started.callback(broker.stop, signal.SIGKILL)
            return broker

        yield begin


def killed_while_running(data_dir: Path, start: Start, verb: str, count: int) -> bool:
    """Kill a broker during a job, let the next one go on, and check the end of the job.

    Returns:
        Whether the job was running when the broker was killed first.
    """
    broker = start(data_dir)
    with connect(broker.address()) as connection:
        channel = connection.channel()
        for name in ("source", "target"):
            channel.declare_queue(name, durable=True)
        sent = [b"%d" % number for number in range(count)]
        dead = {"x-first-death-queue": "target"}
        channel.publish_many(sent, routing_key="source", delivery_mode=2, headers=dead)
    fields = {"name": "source", "where": "body >= 1000", **FIELDS[verb]}
    number = ask_command(data_dir, f"queues.{verb}", fields, SECONDS)["id"]
    killed_at = []
    for _ in range(KILLS):
        killed_at.append(show(data_dir, number)["state"])
        broker.stop(signal.SIGKILL)
        broker.remove()
        broker = start(data_dir)
        if show(data_dir, number)["state"] == "done":
            break
    assert eventually(lambda: show(data_dir, number)["state"] == "done")
    assert show(data_dir, number)["done"] == count - 1000
    assert bodies(data_dir, "target") == list(range(1000, count))
    assert bodies(data_dir, "source") == list(range(count if verb == "copy" else 1000))
    assert broker.stop() == 0
    assert "Traceback" not in broker.log
    broker.remove()
    return killed_at[0] == "running"


@pytest.mark.parametrize("verb", FIELDS)
def test_a_killed_broker_goes_on_with_its_job(tmp_path: Path, start: Start, verb: str) -> None:
    assert any(killed_while_running(tmp_path / f"{n}", start, verb, n) for n in COUNTS)
