"""Queues as tables of a catalog, in the sessions of Harebell."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from harebell.spark.catalog import SETTING, jar
from tools.catalog import build

pytestmark = pytest.mark.timeout(1_200)


@pytest.fixture
def table(spark: SparkSession, broker_url: str, queue: str) -> str:
    """The queue of the test as a table, in a session that knows the broker."""
    spark.conf.set(f"{SETTING}.url", broker_url)
    return f"harebell.default.`{queue}`"


def test_the_class_in_the_package_is_that_of_the_source_beside_it(tmp_path: Path) -> None:
    def classes(path: Path) -> dict[str, bytes]:
        with zipfile.ZipFile(path) as found:
            return {name: found.read(name) for name in found.namelist()}

    assert classes(build(tmp_path)) == classes(jar())


def test_a_queue_is_a_table_for_reads_writes_and_streams(
    spark: SparkSession, table: str, channel: Any, queue: str, tmp_path: Path
) -> None:
    for number in range(3):
        channel.basic_publish("", queue, b"%d" % number)
    bodies = spark.sql(f"SELECT CAST(value AS STRING) AS body FROM {table} WHERE offset > 0")
    assert [row.body for row in bodies.collect()] == ["1", "2"]
    assert spark.sql(f"DESCRIBE {table}").where("col_name = 'routing_key'").count() == 1
    spark.sql(f"INSERT INTO {table} (value) SELECT CAST('3' AS BINARY)")
    spark.createDataFrame([(bytearray(b"4"),)], "value BINARY").writeTo(table).append()
    assert spark.table(table).count() == 5
    # The options of one read, over those of the catalog.
    some = spark.sql(f"SELECT * FROM {table} WITH ('endingOffsets' = '2')")
    assert some.count() == 2
    query = (
        spark.readStream.table(table)
        .writeStream.format("memory")
        .queryName("followed")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(300)
    assert spark.sql("SELECT count(*) FROM followed").first() == (5,)


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("SELECT * FROM harebell.other.orders", "has the namespace default only"),
        ("SELECT * FROM harebell.default.orders.eu.big", "harebell.default.`orders.eu.big`"),
        ("SHOW TABLES IN harebell.other", "SCHEMA_NOT_FOUND"),
        ("CREATE TABLE harebell.default.nowhere (value BINARY)", "`harebell queues declare` does"),
        ("DROP TABLE harebell.default.nowhere", "cannot be found"),
        ("CREATE NAMESPACE harebell.a", "the catalog harebell creates no namespaces"),
        ("SELECT * FROM harebell.default.nowhere", "there is no queue 'nowhere'"),
        (
            "SELECT * FROM harebell.default.a WITH ('endingOffset' = '1')",
            "unknown option 'endingoffset': did you mean endingOffsets",
        ),
    ],
)
def test_an_act_beyond_the_catalog_is_one_sentence_with_the_way_to_do_it(
    spark: SparkSession, broker_url: str, sql: str, said: str
) -> None:
    spark.conf.set(f"{SETTING}.url", broker_url)
    with pytest.raises(Exception, match=said):
        spark.sql(sql).collect()


def test_its_namespace_is_shown(spark: SparkSession) -> None:
    found = spark.sql("SHOW NAMESPACES IN harebell").collect()
    assert [row.namespace for row in found] == ["default"]


def test_its_tables_are_the_queues_of_the_virtual_host(
    spark: SparkSession, broker_url: str, channel: Any, queue: str
) -> None:
    spark.conf.set(f"{SETTING}.url", broker_url)
    others = [f"{queue}.größe", f"{queue} with space"]
    for name in others:
        channel.queue_declare(name)
    found = {row.tableName for row in spark.sql("SHOW TABLES IN harebell.default").collect()}
    assert found >= {queue, *others}
    with pytest.raises(Exception, match="`harebell queues delete` does"):
        spark.sql(f"DROP TABLE harebell.default.`{queue}`")
    for name in others:
        channel.queue_delete(name)
