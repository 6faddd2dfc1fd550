"""The broker ends, by kill -9 or SIGTERM, while a large transaction is committed in slices."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from harebell.client import blocking
from harebell.client.errors import AMQPError
from tests.robustness.lives import life

LIVES = 5
SOAK_LIVES = 60
_MESSAGES = 10_000
"""Of each of the two queues, in one transaction."""
_QUEUES = ("left", "right")


def _commit_one(url: str) -> bool:
    """Commit one transaction; whether the broker said that it is done."""
    with (
        suppress(AMQPError),
        blocking.connect(url) as connection,
    ):
        with connection.channel().transaction() as channel:
            for _ in range(_MESSAGES):
                for queue in _QUEUES:
                    channel.publish_nowait(b"x" * 100, routing_key=queue, delivery_mode=2)
        return True
    return False


def _publish_confirmed(url: str, confirmed: list[int]) -> None:
    """Others have the disk write all the time, and none of that may part a transaction."""
    with (
        suppress(AMQPError),
        blocking.connect(url) as connection,
    ):
        channel = connection.channel()
        while True:
            channel.publish(b"%d" % len(confirmed), routing_key="others", delivery_mode=2)
            confirmed.append(len(confirmed))


def _counts(url: str) -> dict[str, int]:
    with blocking.connect(url) as connection:
        channel = connection.channel()
        return {
            queue: channel.declare_queue(queue, durable=True).message_count
            for queue in (*_QUEUES, "others")
        }


def _lives(directory: Path, seed: int, lives: int) -> None:
    rng = Random(seed)
    done = 0
    confirmed: list[int] = []
    for number in range(lives):
        with life(directory) as broker:
            url = broker.address()
            counts = _counts(url)
            assert counts["left"] == counts["right"], f"life {number}: {counts}, seed {seed}"
            assert counts["left"] in (done * _MESSAGES, (done + 1) * _MESSAGES)
            assert counts["others"] >= len(confirmed)
            done = counts["left"] // _MESSAGES
            other = threading.Thread(target=_publish_confirmed, args=(url, confirmed), daemon=True)
            other.start()
            # The commit begins about when the publishes are written, and takes a moment.
            ends = signal.SIGTERM if number % 4 == 3 else signal.SIGKILL
            timer = threading.Timer(rng.uniform(0.2, 1.2), os.kill, (broker.pid, ends))
            timer.daemon = True
            timer.start()
            while _commit_one(url):
                done += 1
            broker.process.wait(60)
            other.join(60)
    with life(directory) as broker:
        counts = _counts(broker.address())
        assert counts["left"] == counts["right"]
        assert counts["left"] in (done * _MESSAGES, (done + 1) * _MESSAGES)


def test_a_large_transaction_is_found_whole_or_not_at_all(tmp_path: Path) -> None:
    _lives(tmp_path / "data", 13, LIVES)


@pytest.mark.soak
def test_large_transactions_are_whole_after_many_ends(tmp_path: Path) -> None:
    _lives(tmp_path / "data", 14, SOAK_LIVES)
