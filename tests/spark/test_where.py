"""The option `where`: the broker selects the same messages as Spark's own filter."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from harebell.spark.options.values import OptionError
from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.source import QueueSource
from tests.spark.asking import BODIES, bodies, drained, publish, waiting
from tests.spark.conftest import PATIENT

MESSAGES = 240
FORMAT = {
    "bodyFormat": "json",
    "schema": "n BIGINT, name STRING, flag BOOLEAN, deep STRUCT<x: BIGINT>",
}
"""How the bodies are read."""

# A condition of the filter language, and the same in Spark's SQL.
Pair = tuple[str, str]
_NUMBERS = st.integers(-2, 8)
_TEXTS = st.sampled_from(["", "a", "b", "ab", "it's", "\u00e9", "%"])
_SYMBOLS = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
_NUMERIC = st.sampled_from(
    [
        ("body.n", "value.n"),
        ("body.deep.x", "value.deep.x"),
        ("priority", "properties.priority"),
        ("headers.number", "CAST(headers['number'] AS INT)"),
        ("delivery_count", "delivery_count"),
    ]
)
_TEXTUAL = st.sampled_from(
    [
        ("body.name", "value.name"),
        ("properties.message_id", "properties.message_id"),
        ("headers['text']", "headers['text']"),
        ("routing_key", "routing_key"),
        ("exchange", "exchange"),
    ]
)
_FLAGS = st.sampled_from([("body.flag", "value.flag"), ("redelivered", "redelivered")])


def quoted(text: str) -> Pair:
    return "'" + text.replace("'", "''") + "'", "'" + text.replace("'", "\\'") + "'"


@st.composite
def comparisons(draw: Callable[..., Any]) -> Pair:
    kind = draw(st.sampled_from(["number", "text", "flag", "null", "in", "between", "like"]))
    if kind == "flag":
        return draw(_FLAGS)  # type: ignore[no-any-return]
    if kind == "null":
        own, sql = draw(st.one_of(_NUMERIC, _TEXTUAL))
        word = draw(st.sampled_from(["IS NULL", "IS NOT NULL"]))
        return f"{own} {word}", f"{sql} {word}"
    if kind in ("number", "between"):
        own, sql = draw(_NUMERIC)
        low, high = draw(_NUMBERS), draw(_NUMBERS)
        symbol = draw(_SYMBOLS)
        rest = f"{symbol} {low}" if kind == "number" else f"BETWEEN {low} AND {high}"
        return f"{own} {rest}", f"{sql} {rest}"
    own, sql = draw(_TEXTUAL)
    one, two = quoted(draw(_TEXTS)), quoted(draw(_TEXTS))
    if kind == "in":
        return f"{own} IN ({one[0]}, {two[0]})", f"{sql} IN ({one[1]}, {two[1]})"
    if kind == "like":
        pattern = draw(st.sampled_from(["'a%'", "'%b'", "'_'", "'%'"]))
        return f"{own} LIKE {pattern}", f"{sql} LIKE {pattern}"
    symbol = draw(_SYMBOLS)
    return f"{own} {symbol} {one[0]}", f"{sql} {symbol} {one[1]}"


def _joined(parts: list[Pair], word: str) -> Pair:
    own, sql = zip(*parts, strict=True)
    return f" {word} ".join(f"({one})" for one in own), f" {word} ".join(f"({one})" for one in sql)


CONDITIONS = st.recursive(
    comparisons(),
    lambda inner: st.one_of(
        st.builds(_joined, st.lists(inner, min_size=2, max_size=3), st.sampled_from(["AND", "OR"])),
        inner.map(lambda pair: (f"NOT ({pair[0]})", f"NOT ({pair[1]})")),
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def filled(broker_url: str) -> Iterator[str]:
    """A queue of messages with and without properties, headers and fields of bodies."""
    connection = pika.BlockingConnection(pika.URLParameters(f"{broker_url}?heartbeat=0"))
    channel = connection.channel()
    channel.queue_declare("where", durable=True)
    texts = ["", "a", "b", "ab", "it's", "\u00e9", "%", None]
    for number in range(MESSAGES):
        text = texts[number % len(texts)]
        body: dict[str, Any] = {"n": number % 7 - 1, "name": texts[number % 5], "flag": None}
        if number % 3:
            body |= {"flag": number % 2 == 0, "deep": {"x": number % 6}}
        headers = {} if text is None else {"text": text}
        if number % 4:
            headers["number"] = number % 9 - 2
        channel.basic_publish(
            "",
            "where",
            json.dumps(body).encode(),
            pika.BasicProperties(
                priority=None if number % 5 == 0 else number % 6,
                message_id=text,
                headers=headers if number % 6 else None,
            ),
        )
    yield "where"
    channel.queue_delete("where")
    connection.close()


@pytest.fixture(scope="module")
def known(spark: SparkSession, broker_url: str, filled: str) -> Iterator[DataFrame]:
    """All messages, as Spark has them."""
    options = {"url": broker_url, "queue": filled} | FORMAT | PATIENT
    frame = spark.read.format("harebell").options(**options).load().cache()
    assert frame.count() == MESSAGES
    yield frame
    frame.unpersist()


def offsets_of(frame: DataFrame) -> list[int]:
    return [row[0] for row in frame.select("offset").orderBy("offset").collect()]


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(CONDITIONS)
def test_the_broker_selects_what_spark_selects(
    spark: SparkSession, broker_url: str, filled: str, known: DataFrame, condition: Pair
) -> None:
    own, sql = condition
    options = {"url": broker_url, "queue": filled, "where": own} | PATIENT
    found = spark.read.format("harebell").options(**options).load()
    assert offsets_of(found) == offsets_of(known.where(sql)), condition


@pytest.mark.parametrize(
    "condition",
    [
        "properties.message_id = 'a'",
        "properties.message_id IN ('b', 'it\\'s') AND properties.priority >= 2",
        "properties.message_id LIKE 'a%' AND exchange = ''",
        "routing_key IN ('where', 'other') AND NOT redelivered AND properties.priority < 4",
    ],
)
def test_filters_on_properties_are_pushed_down(
    spark: SparkSession, broker_url: str, filled: str, known: DataFrame, condition: str
) -> None:
    options = {"url": broker_url, "queue": filled, "pushdown": "true"} | PATIENT
    frame = spark.read.format("harebell").options(**options).load().where(condition)
    assert offsets_of(frame) == offsets_of(known.where(condition)) != []
    sent = spark.read.format("harebell").options(**options).load()
    assert sent.where(condition).agg(f.count("*")).collect()[0][0] == len(offsets_of(frame))


@pytest.fixture
def reader(broker_url: str, queue: str) -> Iterator[Callable[..., QueueStreamReader]]:
    made: list[QueueStreamReader] = []

    def make(**options: str) -> QueueStreamReader:
        made.append(
            QueueSource(PATIENT | {"url": broker_url, "queue": queue} | options).streamReader(
                BODIES
            )
        )
        return made[-1]

    yield make
    for one in made:
        one.stop()


def test_a_query_that_consumes_says_what_happens_to_the_others(
    reader: Callable[..., QueueStreamReader], channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 5)
    with pytest.raises(OptionError, match="add unmatched=discard if they may be lost"):
        reader(where="body = 3").initialOffset()
    assert waiting(channel, queue) == 5


def test_a_query_that_consumes_discards_what_it_does_not_select(
    reader: Callable[..., QueueStreamReader], channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 10)
    one = reader(where="body IN (3, 7)", unmatched="discard", maxOffsetsPerTrigger="4")
    one.prepareForTriggerAvailableNow()
    assert drained(one, one.initialOffset()) == [[3], [7], []]
    assert waiting(channel, queue) == 0


def test_a_peeking_query_leaves_all_messages(
    reader: Callable[..., QueueStreamReader], channel: Any, queue: str
) -> None:
    publish(channel, queue, 0, 10)
    one = reader(where="body >= 8", delivery="peek")
    start = one.initialOffset()
    end = one.latestOffset(start, one.getDefaultReadLimit())
    assert bodies(one, start, end) == bodies(one, start, end) == [8, 9]
    assert waiting(channel, queue) == 10
