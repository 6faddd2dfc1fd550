"""`python -m bench.spark`: measure the data pipeline beside what Spark itself can do."""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import click
import msgspec
from rich.console import Console
from rich.table import Table

from bench import synthetic
from bench.brokers import Harebell
from bench.filling import CLASSIC, STREAM
from bench.peer import BenchError
from bench.pipeline import USUAL, Bench, Figure
from harebell.base import impl
from harebell.base.names import did_you_mean
from harebell.spark.session import SessionError, build_session

ROWS: dict[str, tuple[str, Callable[[Bench, str], Figure]]] = {
    "stream": ("stream to noop", lambda b, row: b.read(row, STREAM, USUAL)),
    "classic": ("classic queue to noop", lambda b, row: b.read(row, CLASSIC, USUAL)),
    "stream-all": ("the same with all columns", lambda b, row: b.read(row, STREAM, None)),
    "classic-all": ("the same with all columns", lambda b, row: b.read(row, CLASSIC, None)),
    "parquet": ("classic queue to Parquet, zstd", lambda b, row: b.parquet(row)),
    "write-once": ("data frame to exchange", lambda b, row: b.write(row, "exactly-once")),
    "write-least": ("the same, at least once", lambda b, row: b.write(row, "at-least-once")),
    "latency-stream": ("publish to noop", lambda b, row: b.latency(row, STREAM)),
    "latency-classic": ("the same", lambda b, row: b.latency(row, CLASSIC)),
    "foreach-stream": ("publish to foreachBatch", lambda b, row: b.foreach(row, STREAM)),
    "foreach-classic": ("the same", lambda b, row: b.foreach(row, CLASSIC)),
    "queues": ("one trigger of 64 queues", lambda b, row: b.queues(row)),
    "lease": ("commit of a claim", lambda b, row: b.lease(row)),
}
MUST = {
    "stream": ("rows_per_second", 500_000.0),
    "classic": ("rows_per_second", 500_000.0),
    "parquet": ("rows_per_second", 100_000.0),
    "write-once": ("rows_per_second", 150_000.0),
    "write-least": ("rows_per_second", 150_000.0),
    "latency-stream": ("p50_ms", 250.0),
    "latency-classic": ("p50_ms", 250.0),
    "foreach-stream": ("p50_ms", 80.0),
    "foreach-classic": ("p50_ms", 80.0),
    "queues": ("look_ms", 30.0),
    "lease": ("cpu_ms", 50.0),
}
"""What is to be reached on two cores: at least so many rows a second, at most so many ms."""
SHARED = {"stream-all": 0.9, "classic-all": 0.9, "parquet": 0.9, "write-once": 0.8}
"""Shares of what the synthetic source or sink does that are to be reached."""
_ONCE = ("latency-stream", "latency-classic", "foreach-stream", "foreach-classic", "queues")


def played(
    bench: Bench, names: list[str], runs: int, until: float, console: Console
) -> list[Figure]:
    """Every row, and again as long as there is time.

    Args:
        bench: what is measured with.
        names: of the rows.
        runs: how often, at most.
        until: by the clock that never jumps, when the last run is to end; every row is played at
            least once.
        console: gets a line per run.

    Raises:
        BenchError: a run does not count.
    """
    took: dict[str, float] = {}
    figures = []
    for run in range(runs):
        for name in names:
            started = time.monotonic()
            if run and (name in _ONCE or started + took[name] > until):
                continue
            figure = ROWS[name][1](bench, name)
            took[name] = time.monotonic() - started
            figures.append(figure)
            console.print(
                f"{run + 1}/{runs} {name:16} {_line(figure)}  ({took[name]:.0f} s)", highlight=False
            )
    return figures


def medians(found: list[Figure]) -> list[Figure]:
    """One figure per row, in their order."""
    middle = []
    for row in dict.fromkeys(figure.row for figure in found):
        runs = [figure for figure in found if figure.row == row]
        values = {}
        for name in Figure.__struct_fields__[1:]:
            known = [value for each in runs if (value := getattr(each, name)) is not None]
            if known:
                values[name] = statistics.median(known)
        middle.append(Figure(row=row, **values))
    return middle


def verdict(figure: Figure) -> str:
    """What a row must reach, and whether it does."""
    found = []
    if figure.row in MUST:
        name, bound = MUST[figure.row]
        value = getattr(figure, name)
        if name != "rows_per_second":
            return f"<= {bound:g} ms: {'yes' if value <= bound else 'no'}"
        found.append(f">= {bound:,.0f}: {'yes' if value >= bound else 'no'}")
    if figure.row in SHARED and figure.rows_per_second and figure.ceiling:
        wanted = SHARED[figure.row]
        reached = figure.rows_per_second / figure.ceiling >= wanted
        found.append(f">= {wanted:.0%}: {'yes' if reached else 'no'}")
    return ", ".join(found)


def _line(figure: Figure) -> str:
    names = Figure.__struct_fields__[1:]
    known = ((name, getattr(figure, name)) for name in names)
    return "  ".join(f"{name} {value:,.2f}" for name, value in known if value is not None)


def show(found: list[Figure], console: Console) -> None:
    """Print figures as tables."""
    rates = [figure for figure in found if figure.rows_per_second is not None]
    if rates:
        table = Table(title="rows per second, steady; medians")
        for name in ("row", "what", "harebell", "synthetic", "share", "broker us/row", "must"):
            words = name in ("row", "what", "must")
            table.add_column(name, justify="left" if words else "right", no_wrap=True)
        for figure in rates:
            rate, ceiling = figure.rows_per_second or 0.0, figure.ceiling or 1.0
            table.add_row(
                figure.row,
                ROWS[figure.row][0],
                f"{rate:,.0f}",
                f"{ceiling:,.0f}",
                f"{rate / ceiling:.0%}",
                f"{figure.us_per_row:.2f}",
                verdict(figure),
            )
        console.print(table)
    for figure in found:
        if figure.p50_ms is not None:
            console.print(
                f"{figure.row}: p50 {figure.p50_ms:.0f} ms, p90 {figure.p90_ms:.0f} ms"
                + (f", p99 {figure.p99_ms:.0f} ms" if figure.p99_ms is not None else "")
                + f"; the synthetic source {figure.ceiling_ms:.0f} ms; {verdict(figure)}",
                highlight=False,
            )
        if figure.loop is not None:
            console.print(
                f"{figure.row}: a loop of pika and pyarrow {figure.loop:,.0f} rows/s",
                highlight=False,
            )
        if figure.look_ms is not None:
            console.print(
                f"{figure.row}: {figure.look_ms:.0f} ms; {verdict(figure)}", highlight=False
            )
        if figure.cpu_ms is not None:
            console.print(
                f"{figure.row}: {figure.cpu_ms:.1f} ms of broker CPU; {verdict(figure)}",
                highlight=False,
            )


def _names(value: str | None) -> list[str]:
    if value is None:
        return list(ROWS)
    names = [name.strip() for name in value.split(",") if name.strip()]
    for name in names:
        if name not in ROWS:
            raise click.UsageError(
                f"there is no row '{name}': {did_you_mean(name, tuple(ROWS), chr(39))}"
            )
    return names


@click.command()
@click.option("--only", metavar="NAMES", help="Rows, with commas: " + ", ".join(ROWS))
@click.option("--runs", type=click.IntRange(1, 100), default=3, show_default=True)
@click.option("--minutes", type=click.FloatRange(0.1), default=4.5, show_default=True)
@click.option("--messages", type=click.IntRange(1), default=2_000_000, show_default=True)
@click.option("--rows", type=click.IntRange(1), default=500_000, show_default=True)
@click.option("--samples", type=click.IntRange(1, 1000), default=20, show_default=True)
@click.option("--cores", type=click.IntRange(1), default=None, help="All, unless this says less.")
@click.option("--json", "json_file", type=click.Path(dir_okay=False, path_type=Path))
def main(
    only: str | None,
    runs: int,
    minutes: float,
    messages: int,
    rows: int,
    samples: int,
    cores: int | None,
    json_file: Path | None,
) -> None:
    """Measure the data pipeline; ends with code 1 when a row was lost or doubled."""
    names, console = _names(only), Console(soft_wrap=True)
    cores = cores or os.cpu_count() or 1
    load = ", ".join(f"{each:.2f}" for each in os.getloadavg())
    console.print(
        f"{os.cpu_count()} cores, load average {load}, harebell {impl.chosen()}", highlight=False
    )
    begin = time.monotonic()
    try:
        broker = Harebell()
        try:
            spark = build_session("bench", master=f"local[{cores}]", cores=cores)
            try:
                # Stopping a query that waits is logged as an error; what fails is raised here.
                spark.sparkContext.setLogLevel("OFF")
                synthetic.register(spark)
                lake = min(messages, 1_000_000)
                bench = Bench(spark, broker, cores, messages, lake, rows, rows, samples)
                bench.warm()
                console.print(f"warm after {time.monotonic() - begin:.0f} s", highlight=False)
                results = played(bench, names, runs, begin + minutes * 60, console)
            finally:
                spark.stop()
        finally:
            broker.stop()
    except (BenchError, SessionError, RuntimeError) as error:
        click.echo(f"failed: {error}", err=True)
        sys.exit(1)
    found = medians(results)
    show(found, console)
    console.print(
        f"{time.monotonic() - begin:.0f} s in all; nothing was lost or doubled", highlight=False
    )
    if json_file is not None:
        report = {"medians": found, "runs": results}
        json_file.write_bytes(msgspec.json.format(msgspec.json.encode(report)) + b"\n")


if __name__ == "__main__":
    main()
