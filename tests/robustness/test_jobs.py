"""A broker that is killed in the middle of a job goes on with it, and loses and doubles nothing."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harebell.base import impl
from harebell.client.blocking import connect
from harebell.server.control.client import ask_command, ask_rows
from tests.patience import SECONDS, eventually
from tests.running import RunningBroker

# Enough that a job is still running when it is killed, compiled or not.
MANY = 150_000 if impl.chosen() == impl.NATIVE else 20_000
KILLS = 3


def show(data_dir: Path, number: int) -> dict[str, Any]:
    row: dict[str, Any] = ask_command(data_dir, "jobs.show", {"id": number}, SECONDS)
    return row


def bodies(data_dir: Path, queue: str) -> list[int]:
    """The bodies of a queue, in its order."""
    batches = ask_rows(data_dir, "queues.browse", {"name": queue}, SECONDS)
    return [int(row["payload"]) for rows in batches for row in rows]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], RunningBroker]]:
    """Starts a broker on the same directory; those that still run are killed at the end."""
    with ExitStack() as started:

        def begin() -> RunningBroker:
            broker = RunningBroker("--data-dir", str(tmp_path))
            started.callback(broker.stop, signal.SIGKILL)
            return broker

        yield begin


@pytest.mark.parametrize("verb", ["move", "copy"])
def test_a_killed_broker_goes_on_with_its_job(
    tmp_path: Path, start: Callable[[], RunningBroker], verb: str
) -> None:
    broker = start()
    with connect(broker.address()) as connection:
        channel = connection.channel()
        for name in ("source", "target"):
            channel.declare_queue(name, durable=True)
        sent = [b"%d" % number for number in range(MANY)]
        channel.publish_many(sent, routing_key="source", delivery_mode=2)
    fields = {"name": "source", "where": "body >= 1000", "to_queue": "target"}
    number = ask_command(tmp_path, f"queues.{verb}", fields, SECONDS)["id"]
    killed_at = []
    for _ in range(KILLS):
        before = show(tmp_path, number)["done"]
        assert eventually(lambda least=before: show(tmp_path, number)["done"] > least)
        killed_at.append(show(tmp_path, number)["state"])
        broker.stop(signal.SIGKILL)
        broker.remove()
        broker = start()
        if show(tmp_path, number)["state"] == "done":
            break
    assert eventually(lambda: show(tmp_path, number)["state"] == "done")
    row = show(tmp_path, number)
    assert killed_at[0] == "running", "the job was over before the first kill"
    assert row["done"] == MANY - 1000
    assert bodies(tmp_path, "target") == list(range(1000, MANY))
    left = bodies(tmp_path, "source")
    assert left == list(range(1000 if verb == "move" else MANY))
    assert broker.stop() == 0
    assert "Traceback" not in broker.log
    broker.remove()
