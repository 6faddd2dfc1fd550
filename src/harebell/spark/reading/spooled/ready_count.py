"""Count the ready messages of a queue, despite a broker that is too busy to count."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol

from harebell.spark.limits import SPARK_DOUBT_SECONDS


class DeclaredQueue(Protocol):
    """The counts in queue.declare-ok."""

    message_count: int
    consumer_count: int


def ready_count(
    ask: Callable[[], DeclaredQueue],
    *,
    consuming: bool,
    patience: float,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Repeat a passive declare until the answer is plausible.

    RabbitMQ waits a quarter of a second for the counts of a quorum queue. If the queue is too
    busy, the answer is no messages and no consumers.

    Args:
        ask: declares the queue passively.
        consuming: whether this program has a consumer, which the answer must count.
        patience: seconds after which the answer is accepted as it is.
        clock: returns monotonic seconds.
        pause: sleeps.

    Returns:
        The number of ready messages.
    """
    began = clock()
    while True:
        requested = clock()
        count = ask()
        now = clock()
        doubtful = consuming or now - requested >= SPARK_DOUBT_SECONDS
        if count.message_count or count.consumer_count or not doubtful or now - began >= patience:
            return count.message_count
        pause(SPARK_DOUBT_SECONDS)
