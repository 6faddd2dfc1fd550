"""What is measured of the data pipeline: the rows of `python -m bench.spark`.

Every row is played with the synthetic source or sink, with Harebell, and with the synthetic one
again, so that a change of the machine's speed meets both. Messages have 200 bytes and are
persistent, queues are durable.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from bench import synthetic
from bench.brokers import Harebell
from bench.filling import BODY_BYTES, CLASSIC, STREAM, declare, depth, fill
from bench.parquet_loop import pika_to_parquet
from bench.peer import BenchError
from bench.process import cpu_seconds, exact_cpu_seconds
from bench.queries import drained, latencies, looks, until_called
from harebell.client import blocking

USUAL = "value BINARY, offset BIGINT, routing_key STRING, timestamp TIMESTAMP"
_QUEUE, _EXCHANGE = "bench.queue", "bench.exchange"
_QUEUES = 64
_PAUSE_SECONDS = (0.3, 0.7)
_SEED = 20260101


class Figure(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What one run found out; figures that a row does not have are None.

    Args:
        row: what was played.
        rows_per_second: with Harebell.
        ceiling: rows per second with the synthetic source or sink.
        us_per_row: broker CPU microseconds per row.
        p50_ms: half of the rows took at most that long.
        p90_ms: nine of ten took at most that long.
        p99_ms: 99 of 100 took at most that long.
        ceiling_ms: p50 of the synthetic source.
        cpu_ms: broker CPU milliseconds.
        look_ms: median of the time in which one trigger finds the new messages of all queues.
        loop: rows per second of a loop of pika and pyarrow.
    """

    row: str
    rows_per_second: float | None = None
    ceiling: float | None = None
    us_per_row: float | None = None
    p50_ms: float | None = None
    p90_ms: float | None = None
    p99_ms: float | None = None
    ceiling_ms: float | None = None
    look_ms: float | None = None
    loop: float | None = None
    cpu_ms: float | None = None


@dataclass
class Bench:
    """What is measured with.

    Args:
        spark: the session.
        broker: the broker.
        cores: partitions of a micro-batch.
        backlog: messages in a queue that is read.
        lake: messages that go into Parquet.
        written: rows that are written.
        claimed: messages of a lease.
        samples: rows whose latency is measured.
    """

    spark: SparkSession
    broker: Harebell
    cores: int
    backlog: int = 2_000_000
    lake: int = 1_000_000
    written: int = 500_000
    claimed: int = 500_000
    samples: int = 20

    @property
    def url(self) -> str:
        """The broker's address."""
        return f"amqp://guest:guest@127.0.0.1:{self.broker.port}/%2F"

    # --- sources --------------------------------------------------------------------------------

    def stream(self, queue: str, columns: str | None, **options: str) -> DataFrame:
        """A queue as a stream of rows."""
        source = self.spark.readStream.format("harebell").option("url", self.url)
        source = source.options(queue=queue, minPartitions=str(self.cores), **options)
        return (source.schema(columns) if columns else source).load()

    def made(self, rows: int, columns: str | None, pause: float = 0.0) -> DataFrame:
        """As many rows from memory, in micro-batches of the same size."""
        # A plan of a queue tells which columns a source without a schema has.
        schema = columns or self.stream(_QUEUE, None).schema
        source = self.spark.readStream.format(synthetic.FORMAT).schema(schema)
        limit = 1 if pause else 250_000
        return source.options(rows=rows, perBatch=limit, partitions=self.cores, pause=pause).load()

    def costs(self, what: Callable[[], float], rows: int) -> tuple[float, float]:
        """The rate of something, and the broker's CPU microseconds per row."""
        before = cpu_seconds(self.broker.pid)
        rate = what()
        return rate, (cpu_seconds(self.broker.pid) - before) * 1e6 / rows

    # --- rows -----------------------------------------------------------------------------------

    def read(self, row: str, kind: str, columns: str | None) -> Figure:
        """A backlog to Spark's sink that does nothing."""
        fill(self.broker, _QUEUE, kind, self.backlog)
        begin = {"startingOffsets": "earliest"}

        def memory() -> float:
            return drained(self.made(self.backlog, columns), "noop", self.backlog)

        before = memory()
        rate, used = self.costs(
            lambda: drained(self.stream(_QUEUE, columns, **begin), "noop", self.backlog),
            self.backlog,
        )
        self._must_be_left(0 if kind == CLASSIC else self.backlog)
        ceiling = _mean_rate(before, memory())
        return Figure(row=row, rows_per_second=rate, ceiling=ceiling, us_per_row=used)

    def parquet(self, row: str) -> Figure:
        """A queue into Parquet files with zstd, exactly once; every body must be there once."""
        fill(self.broker, _QUEUE, CLASSIC, self.lake)
        ceiling = self._stored(self.made(self.lake, USUAL))
        rate, used = self.costs(lambda: self._stored(self.stream(_QUEUE, USUAL), True), self.lake)
        self._must_be_left(0)
        loop = self._looped() if row else None
        return Figure(row=row, rows_per_second=rate, ceiling=ceiling, us_per_row=used, loop=loop)

    def _looped(self) -> float:
        """Return the rows per second of a loop of pika and pyarrow with the same messages."""
        fill(self.broker, _QUEUE, CLASSIC, self.lake)
        with tempfile.TemporaryDirectory(prefix="harebell-bench-") as directory:
            path = Path(directory) / "loop.parquet"
            seconds = pika_to_parquet(self.url, _QUEUE, self.lake, path)
            row_count = pq.read_metadata(path).num_rows
        if row_count != self.lake:
            raise BenchError(f"{row_count} of {self.lake} messages are in the file of the loop")
        self._must_be_left(0)
        return self.lake / seconds

    def _stored(self, rows: DataFrame, numbered: bool = False) -> float:
        with tempfile.TemporaryDirectory(prefix="harebell-bench-") as directory:
            path = str(Path(directory) / "lake")
            rate = drained(rows, "parquet", self.lake, path=path, compression="zstd")
            if numbered:
                # Every body begins with its number.
                found = self.spark.read.parquet(path).selectExpr("substr(value, 1, 8) AS number")
                distinct = found.distinct().count()
                if distinct != self.lake:
                    raise BenchError(f"{distinct} of {self.lake} messages are in the files")
        return rate

    def write(self, row: str, delivery: str) -> Figure:
        """A data frame to an exchange that leads to a durable queue."""
        declare(self.broker, _QUEUE, CLASSIC)
        with blocking.connect(self.url) as connection:
            channel = connection.channel()
            channel.declare_exchange(_EXCHANGE, "direct", durable=True)
            channel.bind_queue(_QUEUE, _EXCHANGE, "orders")
        body = f"CAST(rpad(CAST(id AS STRING), {BODY_BYTES}, 'x') AS BINARY) AS value"
        rows = self.spark.range(0, self.written, 1, self.cores).selectExpr(
            body, "'orders' AS routing_key"
        )
        before = self._wrote(rows, synthetic.FORMAT, {})
        options = {"url": self.url, "exchange": _EXCHANGE, "delivery": delivery}
        rate, used = self.costs(lambda: self._wrote(rows, "harebell", options), self.written)
        self._must_be_left(self.written)
        ceiling = _mean_rate(before, self._wrote(rows, synthetic.FORMAT, {}))
        return Figure(row=row, rows_per_second=rate, ceiling=ceiling, us_per_row=used)

    def _wrote(self, rows: DataFrame, sink: str, options: dict[str, str]) -> float:
        begin = time.monotonic()
        rows.write.format(sink).options(**options).mode("append").save()
        return self.written / (time.monotonic() - begin)

    def latency(self, row: str, kind: str) -> Figure:
        """From a publish to the end of its micro-batch."""
        declare(self.broker, _QUEUE, kind)
        rng = random.Random(_SEED)

        def pause() -> float:
            return rng.uniform(*_PAUSE_SECONDS)

        floor = latencies(self.made(1_000_000, USUAL, 0.2), self.samples, lambda: 0.0)
        with blocking.connect(self.url) as connection:
            channel = connection.channel()
            took = latencies(
                self.stream(_QUEUE, USUAL, startingOffsets="earliest"),
                self.samples,
                pause,
                lambda: channel.publish(b"x" * BODY_BYTES, routing_key=_QUEUE, delivery_mode=2),
            )
        p50, p90 = (_percentile(took, share) for share in (0.5, 0.9))
        return Figure(row=row, p50_ms=p50, p90_ms=p90, ceiling_ms=_percentile(floor, 0.5))

    def foreach(self, row: str, kind: str) -> Figure:
        """From a publish to the call of the function of foreachBatch."""
        declare(self.broker, _QUEUE, kind)
        rng = random.Random(_SEED)
        floor = until_called(self.made(1_000_000, USUAL, 0.2), self.samples, lambda: 0.0)
        with blocking.connect(self.url) as connection:
            channel = connection.channel()
            took = until_called(
                self.stream(_QUEUE, USUAL, startingOffsets="earliest"),
                self.samples,
                lambda: rng.uniform(*_PAUSE_SECONDS),
                lambda body: channel.publish(body, routing_key=_QUEUE, delivery_mode=2),
            )
        p50, p90, p99 = (_percentile(took, share) for share in (0.5, 0.9, 0.99))
        floor_ms = _percentile(floor, 0.5)
        return Figure(row=row, p50_ms=p50, p90_ms=p90, p99_ms=p99, ceiling_ms=floor_ms)

    def queues(self, row: str) -> Figure:
        """Look for the new messages of many leased queues, as every trigger does."""
        names = [f"{_QUEUE}.{number}" for number in range(_QUEUES)]
        for name in names:
            declare(self.broker, name, CLASSIC)
        source = self.spark.readStream.format("harebell").option("url", self.url)
        rows = source.options(queues=",".join(names)).schema(USUAL).load()
        with blocking.connect(self.url) as connection:
            channel = connection.channel()

            def send() -> None:
                for name in names:
                    channel.publish(b"x" * BODY_BYTES, routing_key=name, delivery_mode=2)

            looked = looks(rows, self.samples, send)
            for name in names:
                channel.delete_queue(name)
        return Figure(row=row, look_ms=_percentile(looked, 0.5))

    def lease(self, row: str) -> Figure:
        """Commit a claim on so many messages."""
        fill(self.broker, _QUEUE, CLASSIC, self.claimed)
        with blocking.connect(self.url) as connection:
            channel = connection.channel()
            group = channel.lease_open(_QUEUE, "bench", timeout=60)
            claim = channel.lease_claim(_QUEUE, "bench", group.epoch, self.claimed)
            if claim is None or claim.messages != self.claimed:
                raise BenchError(f"{claim} is no claim on {self.claimed} messages")
            before = exact_cpu_seconds(self.broker.pid)
            settled = channel.lease_commit(_QUEUE, "bench", group.epoch, claim.number)
            used = exact_cpu_seconds(self.broker.pid) - before
        if settled != self.claimed:
            raise BenchError(f"{settled} of {self.claimed} messages were settled")
        return Figure(row=row, cpu_ms=used * 1000)

    def _must_be_left(self, expected: int) -> None:
        """Check how many messages are in the queue now.

        Raises:
            BenchError: there are others.
        """
        if (found := depth(self.broker, _QUEUE)) != expected:
            raise BenchError(f"{found} messages are in the queue, and not {expected}")

    def warm(self) -> None:
        """Let workers start and the JVM compile what is played."""
        backlog, lake, written = self.backlog, self.lake, self.written
        try:
            self.backlog, self.lake, self.written = (
                min(n, 300_000) for n in (backlog, lake, written)
            )
            self.read("", STREAM, USUAL)
            self.read("", CLASSIC, USUAL)
            self.parquet("")
            self.write("", "exactly-once")
        finally:
            self.backlog, self.lake, self.written = backlog, lake, written


def _mean_rate(before: float, after: float) -> float:
    """Return the rate of two runs together, for a machine that gets slower or faster meanwhile."""
    return 2 / (1 / before + 1 / after)


def _percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]
