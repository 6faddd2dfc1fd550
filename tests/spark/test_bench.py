"""`make bench-spark` in small: what is played counts only if nothing is missing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from rich.console import Console

from bench import synthetic
from bench.brokers import Harebell
from bench.filling import STREAM, fill
from bench.peer import BenchError
from bench.pipeline import USUAL, Bench, Figure
from bench.queries import drained
from bench.spark import played, show


@pytest.fixture
def bench(spark: SparkSession) -> Iterator[Bench]:
    """Small sizes, on a broker of its own."""
    synthetic.register(spark)
    broker = Harebell()
    try:
        yield Bench(spark, broker, 2, 5_000, 4_000, 3_000, 6_000, samples=1)
    finally:
        broker.stop()


@pytest.mark.timeout(600)
def test_a_row_of_each_kind_is_played_and_has_its_figures(bench: Bench) -> None:
    play(bench, ["write-once", "latency-classic", "lease"])


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_rows_are_played_and_have_their_figures(bench: Bench) -> None:
    found = play(
        bench,
        [
            *("stream", "parquet", "write-once"),
            *("latency-classic", "foreach-stream", "queues", "lease"),
        ],
    )
    assert (found["parquet"].loop or 0) > 0
    called = found["foreach-stream"]
    assert 0 < (called.p50_ms or 0) <= (called.p99_ms or 0)
    assert (found["queues"].look_ms or 0) > 0


def play(bench: Bench, rows: list[str]) -> dict[str, Figure]:
    """The figures of rows, among them those of throughput, of latency and of a lease."""
    console = Console(width=200, record=True)
    found = {figure.row: figure for figure in played(bench, rows, 1, 0.0, console)}
    assert list(found) == rows
    for row in {"stream", "parquet", "write-once"} & found.keys():
        figure = found[row]
        assert figure.rows_per_second is not None
        assert figure.rows_per_second > 0
        assert figure.ceiling is not None
        assert figure.ceiling > 0
        assert figure.us_per_row is not None
    latency = found["latency-classic"]
    assert 0 < (latency.p50_ms or 0) <= (latency.p90_ms or 0)
    assert (latency.ceiling_ms or 0) > 0
    assert (found["lease"].cpu_ms or 0) > 0
    show(list(found.values()), console)
    printed = console.export_text()
    assert all(row in printed for row in rows)
    return found


@pytest.mark.timeout(300)
def test_rows_that_are_missing_end_a_run(bench: Bench) -> None:
    fill(bench.broker, "bench.queue", STREAM, 1_000)
    rows = bench.stream("bench.queue", USUAL, startingOffsets="earliest")
    with pytest.raises(BenchError, match="1000 rows came, and 1001 were there"):
        drained(rows, "noop", 1_001)
