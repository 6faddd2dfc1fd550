"""`python -m bench.bulk`: a backlog read as Arrow, without Spark; what a row costs the broker.

A stream and a classic queue get so many messages of 200 B, then each is read from its beginning to
its end by one client, for several choices of columns. The client checks that every row came; it
looks into none of them.
"""

from __future__ import annotations

import time

import click

from bench.brokers import Harebell
from bench.filling import ARGUMENTS, BODY_BYTES, fill
from bench.peer import BenchError
from bench.process import cpu_seconds
from harebell.base import impl
from harebell.client import blocking
from harebell.client.bulk import ALL_COLUMNS

CHOICES = {
    "offset": ("offset",),
    "usual": ("value", "offset", "routing_key", "timestamp"),
    "all": ALL_COLUMNS,
}


def _read(
    broker: Harebell, queue: str, columns: tuple[str, ...], count: int
) -> tuple[float, float]:
    """Rows per second, and the broker's CPU microseconds per row.

    Raises:
        BenchError: a row is missing.
    """
    with blocking.connect(f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F") as connection:
        channel = connection.channel()
        span = channel.span(queue)
        before, begin = cpu_seconds(broker.pid), time.monotonic()
        rows = 0
        for batch in channel.arrow_batches(queue, span.first, span.end, columns=columns):
            rows += batch.rows
        seconds, used = time.monotonic() - begin, cpu_seconds(broker.pid) - before
    if rows != count:
        raise BenchError(f"{rows} of {count} rows of {queue} came")
    return rows / seconds, used * 1e6 / rows


@click.command()
@click.option("--messages", default=2_000_000, show_default=True, help="In each queue.")
@click.option("--runs", default=2, show_default=True, help="Of which the best counts.")
def main(messages: int, runs: int) -> None:
    """Read a backlog as Arrow record batches."""
    click.echo(f"{messages:,} messages of {BODY_BYTES} B, {impl.chosen()}")
    broker = Harebell()
    try:
        for kind in ARGUMENTS:
            fill(broker, kind, kind, messages)
            for name, columns in CHOICES.items():
                found = [_read(broker, kind, columns, messages) for _ in range(runs)]
                rate, used = max(each[0] for each in found), min(each[1] for each in found)
                click.echo(
                    f"{kind:8} {name:7} {rate:11,.0f} rows/s {used:6.3f} us of broker CPU/row"
                )
    finally:
        broker.stop()


if __name__ == "__main__":
    main()
