"""How many messages of a queue are ready, checked against a broker that is too busy to count."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from harebell.base.limits import SPARK_DOUBT_SECONDS


class DeclaredQueue(Protocol):
    """What queue.declare-ok says."""

    message_count: int
    consumer_count: int


def waiting(
    ask: Callable[[], DeclaredQueue],
    *,
    consuming: bool,
    patience: float,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Ask until the answer makes sense.

    RabbitMQ gives a quorum queue a quarter of a second to say what it has. From one that is too
    busy it answers that it has no messages, and no consumers either.

    Args:
        ask: declares the queue passively.
        consuming: whether there is a consumer of our own, which the answer must count.
        patience: seconds after which the answer is taken as it is.
        clock: seconds that pass.
        pause: waits for some.

    Returns:
        How many messages wait.
    """
    began = clock()
    while True:
        requested = clock()
        found = ask()
        now = clock()
        doubtful = consuming or now - requested >= SPARK_DOUBT_SECONDS
        if found.message_count or found.consumer_count or not doubtful or now - began >= patience:
            return found.message_count
        pause(SPARK_DOUBT_SECONDS)
