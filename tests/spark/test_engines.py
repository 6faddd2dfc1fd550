"""The same questions on Spark and on the embedded engine: the same columns and rows."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pika
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyspark.sql import Row, SparkSession

from harebell.client.url import URL
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sql.embedded.engine import Engine, translate_selection
from harebell.pipeline.sql.queries import drop_views, select, selected_by_spark
from harebell.pipeline.sql.queue_snapshot import take_snapshot
from harebell.pipeline.sql.selections import SelectStatement
from harebell.pipeline.sql.shown_rows import first_rows
from harebell.pipeline.sql.splitting import split
from harebell.pipeline.sql.verbs import SettleStatement, understand

pytestmark = pytest.mark.timeout(1_200)

HERE = Path(__file__).parent
QUESTIONS = [each.sql for each in split((HERE / "questions.sql").read_text())]
ABOUT_LAKES = [each.sql for each in split((HERE / "lake_questions.sql").read_text())]
SETTLEMENTS = [each.sql for each in split((HERE / "settlements.sql").read_text())]
ORDERS = 100
ROWS = 1_000
ODD = (
    *(b"", b"\xff\xfe", b"no JSON", b'{"a": null}', b'{"a": "text", "list": [1, {"x": 2.50}]}'),
    *(
        b'{"a": true, "inner": {"b": [1, 2], "c": "d/e"}}',
        b'{"a": 1.10, "list": [1, null]}',
        b"[1]",
        b'{"a": "\\u00e9"}',
    ),
    # What Spark reads as JSON, and DuckDB does not; and the other way round.
    *(b"{'a': \"it's\"}", b'{"a": 1} and more', b'{"a": "two\nlines"}', b'{"a": null, "a": 1} x'),
    *(b'{"a": NaN}', b'{"a": [1,]}', b'{"a": 1', b'{"a": 12345678.5}', b'{"a": -0.0001}'),
    *(b'{"a": null, "a": 2}', b'{"a": {"x": 1}, "a": {"list": 2}, "list": [], "list": [0, 3]}'),
    *(b'{"a": 1e400}', '{"a": {"x": "\U0001f600 \u00e9 /"}}'.encode(), b'{"a": "\\ud83d"} x'),
)


@pytest.fixture(scope="module")
def shop(broker_url: str) -> Iterator[URL]:
    """Queues and a stream to ask about."""
    connection = pika.BlockingConnection(pika.URLParameters(f"{broker_url}?heartbeat=0"))
    channel = connection.channel()
    channel.confirm_delivery()
    names = ("orders", "customers", "odd")
    for name in names:
        channel.queue_declare(name, durable=True)
    channel.queue_declare("log", durable=True, arguments={"x-queue-type": "stream"})
    people = ("ada", "bob", "eve")
    for number in range(ORDERS):
        body = '{"id": %d, "total": %d, "price": "%d.%02d", "customer": {"name": "%s"}, "last": %d}'
        name = people[number % 3]
        region = ("north", "south", "Nörd", None)[number % 4]
        properties = pika.BasicProperties(
            message_id=f"m{number}",
            priority=number % 10,
            timestamp=1_772_323_200 + number * 1_800 if number % 5 else None,
            headers=None if region is None else {"region": region, "n": number},
        )
        values = (number, number, number, number % 100, name, number)
        channel.basic_publish("", "orders", (body % values).encode(), properties)
    for number in range(4):
        body = b'{"key": "%s"}' % (b"ada", b"bob", b"eve", b"nemo")[number]
        channel.basic_publish("", "customers", body)
        channel.basic_publish("", "log", b"%d" % number)
    for body in ODD:
        channel.basic_publish("", "odd", body, pika.BasicProperties(timestamp=1_516_000_000_000))
    yield URL.parse(broker_url)
    for name in (*names, "log"):
        channel.queue_delete(name)
    connection.close()


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a table of two Parquet files."""
    directory = tmp_path_factory.mktemp("lake")
    (directory / "shop").mkdir()
    numbers, texts = range(10), pa.string()
    table = pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "n": pa.array(numbers, pa.int32()),
            "name": [f"x{number}" if number else None for number in numbers],
            "at": [datetime(2026, 1, 1, number, tzinfo=UTC) for number in numbers],
            "day": [date(2026, 1, number + 1) for number in numbers],
            "price": pa.array([Decimal(number) / 4 for number in numbers], pa.decimal128(10, 2)),
            "ok": [number % 2 == 0 for number in numbers],
            "value": [b"%d" % number for number in numbers],
            "detail": [{"a": number, "z": str(number)} for number in numbers],
            "labels": pa.array(
                [[("k", str(number))] if number % 3 else [] for number in numbers],
                pa.map_(texts, texts),
            ),
            "share": [number / 3 for number in numbers],
        }
    )
    parquet.write_table(table.slice(0, 5), directory / "shop" / "a.parquet")
    parquet.write_table(table.slice(5), directory / "shop" / "b.parquet")
    return directory


def plain(value: Any) -> Any:
    """A value without the classes of either engine."""
    if isinstance(value, Row):
        return {name: plain(each) for name, each in value.asDict().items()}
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, bytearray):
        return bytes(value)
    return pytest.approx(value, rel=1e-12, nan_ok=True) if isinstance(value, float) else value


def asked(sql: str) -> SelectStatement:
    """The question as a statement."""
    statement = understand(sql)
    assert isinstance(statement, SelectStatement)
    return statement


def test_the_same_questions_have_the_same_rows_on_spark_and_on_the_embedded_engine(
    spark: SparkSession, broker_url: str, shop: URL, lake: Path
) -> None:
    different = []
    with Engine() as engine:
        for sql in (*QUESTIONS, *ABOUT_LAKES):
            query = asked(sql)
            frame = select(spark, query, broker_url, lake)
            wanted = [tuple(map(plain, row)) for row in first_rows(frame, ROWS)]
            try:
                answer = engine.answer(query, shop, ROWS, lake=lake)
            except PipelineError as error:
                different.append(f"{sql}\n  {error}")
                continue
            finally:
                drop_views(spark, query)
            rows = [
                tuple(dict(v) if isinstance(v, dict) else v for v in row) for row in answer.rows
            ]
            if list(answer.columns) != frame.columns or rows != wanted:
                different.append(f"{sql}\n  {frame.columns} {wanted}\n  {answer.columns} {rows}")
    assert len(QUESTIONS) >= 40
    assert not different, "\n".join(different)


def test_both_engines_select_the_same_messages_to_settle(spark: SparkSession, shop: URL) -> None:
    different = []
    with Engine() as engine:
        for sql in SETTLEMENTS:
            settlement = understand(sql)
            assert isinstance(settlement, SettleStatement)
            with take_snapshot(shop, settlement.queue) as taken:
                messages = taken.table()
            wanted = [
                tuple(map(plain, row)) for row in selected_by_spark(spark, settlement, messages)
            ]
            try:
                rows = engine.selected(translate_selection(settlement, sql), messages)
            except PipelineError as error:
                different.append(f"{sql}\n  {error}")
                continue
            if rows != wanted:
                different.append(f"{sql}\n  {wanted}\n  {rows}")
    assert not different, "\n".join(different)
