"""What a pipeline will do is said in sentences."""

from __future__ import annotations

from pathlib import Path

import pytest

from harebell.pipeline.checking import check
from harebell.pipeline.spec.explaining import explain


def explained(directory: Path, text: str) -> list[str]:
    file = directory / "p.yaml"
    file.write_text(text)
    return explain(check(file)).replace(str(directory.resolve()), "HERE").splitlines()


def test_a_pipeline_is_explained_from_source_to_sinks(tmp_path: Path) -> None:
    text = """
source:
  queue: orders
  url: amqp://me:s3cret@host/
  body: {format: json, schema: id BIGINT, onError: dead-letter, deadLetter: {exchange: bad}}
steps:
  - sql: SELECT data.*, routing_key FROM source
sinks:
  - {parquet: lake, partitionBy: id}
  - {delta: table, where: id > 5}
  - {exchange: out, routingKey: "concat('a', id)"}
  - {iceberg: shop.t, catalog: "postgresql+psycopg://me:s3cret@db/lake", mergeSchema: true}
  - {delta: totals, mode: overwrite}
  - {queue: other}
  - {console: , rows: 3}
trigger: 90s
"""
    assert explained(tmp_path, text) == [
        "pipeline p",
        "  reads queue orders as source: bodies as JSON, in data",
        "    data is id BIGINT",
        "    a body that is not so goes to exchange bad, with the reason",
        "  makes step1: SELECT data.*, routing_key FROM source",
        "  writes step1 to Parquet files HERE/lake, partitioned by id, each micro-batch once",
        "  writes step1 where id > 5 to Delta table HERE/table, each micro-batch once",
        "  writes step1 to exchange out, routing key concat('a', id)",
        "  writes step1 to Iceberg table shop.t of postgresql+psycopg://***@db/lake, each "
        "micro-batch once, with new columns",
        "  writes step1 to Delta table HERE/totals, each micro-batch in place of the one before",
        "  writes step1 to queue other",
        "  writes step1 to the console, 3 rows of each micro-batch",
        "  starts a micro-batch every 90 seconds",
        "  remembers in HERE/checkpoints/p",
        "  runs its steps on one micro-batch at a time, because bad rows go somewhere of their own",
        "  runs on this machine",
    ]


@pytest.mark.parametrize(
    ("options", "read"),
    [
        ("queue: a", "queue a"),
        ("queues: [a, b]", 'queues ["a", "b"]'),
        ("queuePattern: a.*", "queuePattern a.*"),
        ("superStream: a", "superStream a"),
        ("deadLettersOf: a", "deadLettersOf a"),
        ("exchange: a, bindingKeys: k", "exchange a"),
        ("QUEUE: a", "queue a"),
    ],
)
def test_every_kind_of_source_is_named(tmp_path: Path, options: str, read: str) -> None:
    text = f"source: {{{options}}}\nsinks: [console: ]\n"
    assert explained(tmp_path, text)[1] == f"  reads {read} as source: bodies as they are, in value"


def test_a_pipeline_with_state_says_so(tmp_path: Path) -> None:
    text = """
sources:
  a: {queue: a, watermark: {column: timestamp, delay: 1 minute}}
  b: {queue: b}
steps:
  - sql: SELECT a.value, a.timestamp FROM a JOIN b ON a.routing_key = b.routing_key
    watermark: {column: timestamp, delay: 2 minutes}
sinks: [{console: }]
trigger: asap
master: spark://host:7077
"""
    lines = explained(tmp_path, text)
    assert "    rows are late by at most 1 minute, by timestamp" in lines
    assert "  keeps state from one micro-batch to the next, and writes in mode append" in lines
    assert "  starts a micro-batch asap: as soon as there is something" in lines
    assert lines[-1] == "  runs on spark://host:7077"
