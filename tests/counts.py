"""What long and random tests did, and with which seed, printed at the end of every run.

A test that takes `seed` prints it first, so that a failure shows it; `HAREBELL_SEED=N` repeats a
run. A test that takes `counted` says with it how much it did.
"""

from __future__ import annotations

import os
import random
import sys
from collections.abc import Callable
from typing import Any

import pytest

VARIABLE = "HAREBELL_SEED"
_KEY = "counted"


@pytest.fixture
def seed(record_property: Callable[[str, object], None]) -> int:
    """A seed of this run's own, or the one of the environment."""
    chosen = int(os.environ.get(VARIABLE) or random.randrange(1 << 32))
    sys.stdout.write(f"{VARIABLE}={chosen}\n")
    record_property(VARIABLE, chosen)
    return chosen


@pytest.fixture
def counted(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Say what a test did."""
    return lambda text: record_property(_KEY, text)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A line for every test that counted something."""
    lines = []
    for reports in terminalreporter.stats.values():
        for report in reports:
            said = dict(getattr(report, "user_properties", ()))
            if _KEY in said and getattr(report, "when", "") == "call":
                seeded = f" [{VARIABLE}={said[VARIABLE]}]" if VARIABLE in said else ""
                lines.append(f"{report.nodeid}: {said[_KEY]}{seeded}")
    if lines:
        terminalreporter.section("counts")
        for line in sorted(lines):
            terminalreporter.line(line)
