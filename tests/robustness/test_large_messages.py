"""Large persistent messages outlive kills, whole, beside small ones in the same queue."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path
from random import Random

import pytest

from harebell.client import blocking
from harebell.client.errors import AMQPError
from tests.patience import SECONDS
from tests.robustness.lives import life

LIVES = 4
SOAK_LIVES = 40
_MIB = 1024 * 1024
_SIZES = (40, 5 * _MIB, 300, 9 * _MIB + 3, 4 * _MIB, 100_000)
"""Around the size from which a message has a segment of its own."""


def _body(number: int) -> bytes:
    octets = number.to_bytes(8)
    return octets * (_SIZES[number % len(_SIZES)] // 8)


def _publish(url: str, first: int, confirmed: list[int]) -> None:
    with suppress(AMQPError), blocking.connect(url) as connection:
        channel = connection.channel()
        number = first
        while True:
            channel.publish(_body(number), routing_key="large", delivery_mode=2)
            confirmed.append(number)
            number += 1


def _kill_later(pid: int, confirmed: list[int], enough: int, seconds: float) -> None:
    """Kill a broker some time after it has confirmed enough, however long that takes."""
    while len(confirmed) < enough:
        time.sleep(0.01)
    time.sleep(seconds)
    os.kill(pid, signal.SIGKILL)


def _found(url: str) -> list[int]:
    """The numbers of all messages, each of which is whole."""
    numbers = []
    with blocking.connect(url) as connection:
        channel = connection.channel()
        channel.declare_queue("large", durable=True)
        left = channel.declare_queue("large", durable=True).message_count
        for message in channel.consume("large", prefetch=2, timeout=SECONDS) if left else ():
            number = int.from_bytes(message.body[:8])
            assert message.body == _body(number), f"message {number} is not what was published"
            numbers.append(number)
            message.ack()
            left -= 1
            if not left:
                break
    return numbers


def _lives(directory: Path, seed: int, lives: int) -> None:
    rng = Random(seed)
    confirmed: list[int] = []
    found: list[int] = []
    for _ in range(lives):
        with life(directory) as broker:
            url = broker.address()
            with blocking.connect(url) as connection:
                connection.channel().declare_queue(
                    "kept", durable=True, arguments={"x-max-length": 3}
                )
            found += _found(url)
            assert set(confirmed) <= set(found)
            assert found == sorted(found)
            words = (broker.pid, confirmed, len(confirmed) + 2, rng.uniform(0.0, 1.0))
            threading.Thread(target=_kill_later, args=words, daemon=True).start()
            _publish(url, max([*confirmed, *found], default=-1) + 1, confirmed)
            broker.process.wait(60)
    with life(directory) as broker:
        found += _found(broker.address())
    assert set(confirmed) <= set(found)
    assert len(confirmed) > lives


def test_confirmed_large_messages_are_there_after_kills(tmp_path: Path) -> None:
    _lives(tmp_path / "data", 21, LIVES)


@pytest.mark.soak
def test_confirmed_large_messages_are_there_after_many_kills(tmp_path: Path) -> None:
    _lives(tmp_path / "data", 22, SOAK_LIVES)
