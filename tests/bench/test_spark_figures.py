"""What `make bench-spark` makes of its runs, without Spark; tests/spark plays the rows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.peer import BenchError
from bench.pipeline import Figure
from bench.queries import Batch, steady
from bench.spark import MUST, ROWS, SHARED, verdict

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
