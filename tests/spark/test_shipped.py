"""Pipelines that are commands, on a real broker and session: archive, replay, triage, stats."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pika
import pytest
from pyspark.sql import SparkSession

from harebell.client.url import URL
from harebell.pipeline.builtin import builtin_pipelines as shipped
from harebell.pipeline.builtin import queue_reports as looking
from harebell.pipeline.builtin.replaying import Choice, chosen, replay
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.hosting import host
from harebell.pipeline.sql.queries import select
from harebell.pipeline.sql.tables import lake_of
from harebell.pipeline.views import View

pytestmark = pytest.mark.timeout(1_200)


def rows(frame: Any) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def test_messages_routed_by_an_exchange_are_archived_and_can_be_replayed(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    channel.exchange_declare("shipped", "topic")
    tapped = shipped.tapped(URL.parse(broker_url), "shipped", ["a.#"])
    assert tapped == "archive.shipped"
    for number in range(20):
        properties = pika.BasicProperties(
            headers={"n": number}, message_id=f"m{number}", priority=number % 3
        )
        channel.basic_publish("shipped", f"a.{number}", b"%d" % number, properties)
    channel.basic_publish("shipped", "b", b"not kept")
    lake = tmp_path / "lake"
    described = shipped.archive(broker_url, tapped, lake, compact_every=1)
    view = View(lambda _line: None, terminal=False)
    (state,) = host([described], tmp_path / "registry", view, spark=spark)
    assert (state.state, state.rows, state.error) == ("ended", 20, "")
    table = lake_of(spark, "lake", tmp_path)
    kept = rows(table.orderBy("offset"))
    assert [row["value"] for row in kept] == [b"%d" % number for number in range(20)]
    assert kept[3]["headers"] == {"n": "3"}
    assert kept[3]["date"] == kept[3]["timestamp"].date()
    assert (lake / f"date={kept[3]['date']}").is_dir()

    choice = Choice(where="CAST(headers['n'] AS INT) < 6", since="2013-01-01", skip=2)
    told: list[int] = []
    again = chosen(table, choice)
    assert replay(again, URL.parse(broker_url), "", queue, 1_000.0, told.append) == 4
    method, properties, body = channel.basic_get(queue, auto_ack=True)
    assert body == b"2"
    assert (properties.message_id, properties.priority) == ("m2", 2)
    assert properties.headers["n"] == "2"
    assert "x-replayed-at" in properties.headers
    assert method.message_count == 3
    with pytest.raises(PipelineError, match="go on with --skip"):
        replay(again, URL.parse(broker_url), "amq.topic", "no.where", 0.0, told.append)
    with pytest.raises(PipelineError, match="`nope`"):
        chosen(table, Choice(where="nope = 1"))
    with pytest.raises(PipelineError, match="there is no table at"):
        lake_of(spark, "none", tmp_path)
    channel.queue_delete(tapped)
    channel.exchange_delete("shipped")


def test_a_stream_is_archived_and_mirrored_from_its_first_message(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    stream = f"{queue}.stream"
    channel.queue_declare(stream, durable=True, arguments={"x-queue-type": "stream"})
    for number in range(10):
        channel.basic_publish("", stream, b"%d" % number)
    described = [
        shipped.archive(broker_url, stream, tmp_path / "lake"),
        shipped.mirror(
            broker_url,
            stream,
            broker_url,
            exchange="",
            to_queue=queue,
            checkpoint=tmp_path / "checkpoint",
        ),
    ]
    view = View(lambda _line: None, terminal=False)
    states = host(described, tmp_path / "registry", view, spark=spark)
    assert [(one.state, one.rows, one.error) for one in states] == [("ended", 10, "")] * 2
    kept = rows(lake_of(spark, "lake", tmp_path).orderBy("offset"))
    assert [row["value"] for row in kept] == [b"%d" % number for number in range(10)]
    assert channel.queue_declare(queue, passive=True).method.message_count == 10
    channel.queue_delete(stream)


def test_dead_letters_are_shown_in_groups_and_the_flow_of_a_queue_in_numbers(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    work = f"{queue}.work"
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": queue}
    channel.queue_declare(work, arguments=arguments)
    for number in range(6):
        body = b'{"id": %d, "text": "a %d"}' % (number, number) if number < 4 else b"\xff"
        channel.basic_publish("", work, body)
        method, _, _ = channel.basic_get(work)
        channel.basic_nack(method.delivery_tag, requeue=False)
    found = rows(select(spark, looking.triage(queue, tuple(looking.GROUPS)), broker_url, tmp_path))
    assert [(row["queue"], row["reason"], row["messages"]) for row in found] == [
        (work, "rejected", 4),
        (work, "rejected", 2),
    ]
    assert [row["signature"] for row in found] == ['{"id": 0, "text": }', "octets"]
    (flow,) = rows(select(spark, looking.stats(queue, 86_400 * 365), broker_url, tmp_path))
    assert (flow["messages"], flow["keys"], flow["hottest_percent"]) == (6, 1, 100.0)
    assert flow["octets_p50"] == 24
    (top,) = rows(select(spark, looking.top_keys(queue, 3), broker_url, tmp_path))
    assert (top["routing_key"], top["messages"], top["percent"]) == (queue, 6, 100.0)
    assert channel.queue_declare(queue, passive=True).method.message_count == 6
    channel.queue_delete(work)


def test_a_replay_keeps_the_time_of_a_message_whatever_it_is_and_wherever_it_runs(
    spark: SparkSession, broker_url: str, channel: Any, queue: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = (0, 1_700_000_000, 1_700_000_000_000)
    table = spark.sql(
        "SELECT CAST('x' AS BINARY) AS value, i AS offset, "
        "named_struct('timestamp', timestamp_seconds(element_at(array("
        f"{', '.join(f'{each}L' for each in times)}), i))) AS properties "
        "FROM explode(sequence(1, 3)) AS t(i)"
    )
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert replay(table, URL.parse(broker_url), "", queue, 0.0, lambda _count: None) == 3
    finally:
        monkeypatch.undo()
        time.tzset()
    found = [channel.basic_get(queue, auto_ack=True)[1].timestamp for _ in times]
    assert found == list(times)


def test_a_fault_of_a_replay_is_one_sentence(
    spark: SparkSession, broker_url: str, queue: str
) -> None:
    table = spark.sql("SELECT 'x' AS value, now() AS timestamp")
    for choice in (Choice(since="garbage"), Choice(where="CAST(value AS INT) = 1")):
        with pytest.raises(PipelineError, match=r"cannot be cast .*; go on with --skip 0"):
            replay(
                chosen(table, choice), URL.parse(broker_url), "", queue, 0.0, lambda _count: None
            )
    with pytest.raises(PipelineError, match="column value is int, so its rows are no messages"):
        chosen(spark.sql("SELECT 5 AS value"), Choice())
