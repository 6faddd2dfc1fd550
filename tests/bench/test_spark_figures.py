"""What `make bench-spark` makes of its runs, without Spark; tests/spark plays the rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.peer import BenchError
from bench.pipeline import Figure
from bench.queries import Batch, steady
from bench.spark import MUST, ROWS, SHARED, medians, verdict

ROOT = Path(__file__).parents[2]


def batch(rows: int, begin_ms: float, end_ms: float) -> Batch:
    return Batch(rows, begin_ms, end_ms, "{}")


def test_a_rate_is_steady_from_the_second_micro_batch_on() -> None:
    slow_start = [batch(100, 0, 10_000), batch(0, 10_000, 10_001), batch(100, 10_001, 10_101)]
    assert steady(slow_start) == pytest.approx(1000)
    assert steady([*slow_start, batch(100, 10_101, 10_201)]) == pytest.approx(1000)


def test_the_only_micro_batch_counts_and_none_is_an_error() -> None:
    assert steady([batch(50, 0, 100)]) == pytest.approx(500)
    with pytest.raises(BenchError, match="no rows"):
        steady([batch(0, 0, 100)])


def test_medians_are_taken_per_row_of_the_table() -> None:
    found = [Figure(row="stream", rows_per_second=rate) for rate in (3.0, 1.0, 2.0)]
    found.append(Figure(row="lease", cpu_ms=8.0))
    assert medians(found) == [
        Figure(row="stream", rows_per_second=2.0),
        Figure(row="lease", cpu_ms=8.0),
    ]


@pytest.mark.parametrize(
    ("figure", "says"),
    [
        (Figure(row="parquet", rows_per_second=1e5, ceiling=1e9), ">= 100,000: yes, >= 90%: no"),
        (
            Figure(row="parquet", rows_per_second=99_999.0, ceiling=1.0),
            ">= 100,000: no, >= 90%: yes",
        ),
        (
            Figure(row="write-once", rows_per_second=2e5, ceiling=2e5),
            ">= 150,000: yes, >= 80%: yes",
        ),
        (Figure(row="write-once", rows_per_second=2e5, ceiling=3e5), ">= 150,000: yes, >= 80%: no"),
        (Figure(row="stream-all", rows_per_second=9.0, ceiling=10.0), ">= 90%: yes"),
        (Figure(row="queues", look_ms=30.5), "<= 30 ms: no"),
        (Figure(row="lease", cpu_ms=50.1), "<= 50 ms: no"),
        (Figure(row="latency-stream", p50_ms=200.0), "<= 250 ms: yes"),
        (Figure(row="write-least", rows_per_second=2e5, ceiling=2e5), ">= 150,000: yes"),
    ],
)
def test_a_row_is_compared_with_what_it_must_reach(figure: Figure, says: str) -> None:
    assert verdict(figure) == says


def test_targets_of_figures_belong_to_rows_that_are_played() -> None:
    assert set(MUST) | set(SHARED) <= set(ROWS)


def test_a_wrong_row_gets_the_nearest_right_one() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bench.spark", "--only", "parquett"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 2
    assert "there is no row 'parquett': did you mean 'parquet'?" in " ".join(done.stderr.split())


# In a process of its own: what a thread has used goes when it ends, and others come and go here.
BURN = """
import os, time
from bench.process import exact_cpu_seconds
before, used = exact_cpu_seconds(os.getpid()), time.process_time()
while time.process_time() < used + 0.5:
    pass
print(exact_cpu_seconds(os.getpid()) - before)
"""


def test_cpu_time_is_counted_exactly() -> None:
    done = subprocess.run(
        [sys.executable, "-c", BURN], cwd=ROOT, capture_output=True, text=True, check=True
    )
    # The scheduler counts what a thread has just used with its next tick.
    assert float(done.stdout) >= 0.47
