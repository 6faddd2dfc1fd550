"""`python -m harebell.testing`: how long the brokers of the fixtures take to be ready."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from harebell.testing.spares import Spares
from harebell.testing.virtual import VirtualBroker

_ROUNDS = 10
"""Brokers of each fixture."""
_TEST_SECONDS = 1.0
"""How long the test is that has the broker before: the next one starts meanwhile."""


def measured(make: Callable[[], Any], rounds: int, pause_seconds: float) -> list[float]:
    """Return the milliseconds until each of some brokers was ready, one after the other."""
    times = []
    for _ in range(rounds):
        begun = time.perf_counter()
        broker = make()
        times.append((time.perf_counter() - begun) * 1000)
        time.sleep(pause_seconds)
        with broker:
            pass
    return times


def main(rounds: int = _ROUNDS) -> None:
    """Print the times of both fixtures."""
    spares = Spares()
    try:
        shown = (
            ("harebell_broker", measured(lambda: spares.take({}), rounds, _TEST_SECONDS)),
            ("harebell_virtual", measured(VirtualBroker, rounds, 0.0)),
        )
    finally:
        spares.close()
    for name, (first, *rest) in shown:
        sys.stdout.write(
            f"{name:<17} first {first:.0f} ms, then {statistics.median(rest):.0f} ms "
            f"(at most {max(rest):.0f} ms)\n"
        )


if __name__ == "__main__":
    main()
