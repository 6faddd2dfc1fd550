"""What the disk gives: a loop that appends as many bytes as a broker must, and syncs them."""

from __future__ import annotations

import os
import tempfile
import time

from bench.scenarios import WINDOW, Scenario

RECORD_BYTES = 36
"""A record's bytes before exchange, routing key, properties and body."""
_ALIGN = 8
_PROPERTIES_BYTES = 3


def record_bytes(scenario: Scenario) -> int:
    """Octets of a message of a scenario in a log."""
    names = len(scenario.exchange) + len(scenario.routing_key)
    size = RECORD_BYTES + names + _PROPERTIES_BYTES + scenario.size
    return size + -size % _ALIGN


def appended_per_second(scenario: Scenario, messages: int) -> float:
    """Messages per second of a loop that writes so many, a window at a time, and syncs each.

    The file is where temporary files are, as the data directories of the brokers are.
    """
    block = b"x" * (record_bytes(scenario) * WINDOW)
    rounds = max(1, messages // WINDOW)
    with tempfile.NamedTemporaryFile(prefix="harebell-bench-") as file:
        number = file.fileno()
        begin = time.monotonic()
        for _ in range(rounds):
            os.write(number, block)
            os.fdatasync(number)
        seconds = time.monotonic() - begin
    return rounds * WINDOW / seconds
