"""A project of Spark's declarative pipelines over queues, which runs as it is.

NAME/
  spark-pipeline.yml         what `spark-pipelines` reads
  transformations/orders.py  queue -> streaming table -> materialized view, and -> exchange
  pipeline-storage/          where Spark keeps its checkpoints
"""

from __future__ import annotations

import re
from pathlib import Path

from harebell.pipeline.errors import PipelineError

RUN = "spark-pipelines run --conf spark.sql.catalogImplementation=hive"
"""The command; with this catalog, in `metastore_db`, the next run knows the tables.

It cannot be in the file of the project: Spark sets what stands there in a session that exists
already, and refuses static settings.
"""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_SPEC = """\
name: {name}
storage: {storage}
libraries:
  - glob:
      include: transformations/**
configuration:
  spark.sql.shuffle.partitions: "2"
"""
_ORDERS = '''\
"""Orders from a queue: a table of all, totals by region, and large ones to an exchange.

The broker is that of the environment variable HAREBELL_URL, by default the one on this machine.
"""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession

spark = SparkSession.active()

ORDER = "id BIGINT, region STRING, total DOUBLE"


@dp.table
def orders() -> DataFrame:
    """All orders of the queue `orders`, each once."""
    messages = spark.readStream.format("harebell").option("queue", "orders").load()
    return messages.selectExpr(
        f"from_json(CAST(value AS STRING), '{ORDER}') AS `order`", "timestamp AS received"
    ).select("order.*", "received")


@dp.materialized_view
def totals() -> DataFrame:
    """How many orders there are, and what they sum up to, by region."""
    return spark.read.table("orders").groupBy("region").agg({"id": "count", "total": "sum"})


dp.create_sink("large", "harebell", {"exchange": "amq.topic", "mandatory": "false"})


@dp.append_flow(target="large")
def large_orders() -> DataFrame:
    """Orders above 900 as messages, with the region as routing key."""
    return (
        spark.readStream.table("orders")
        .where("total > 900")
        .selectExpr("to_json(struct(id, region, total)) AS value", "region AS routing_key")
    )
'''


def make_project(directory: Path) -> list[Path]:
    """Write the files of a project into a new directory; return them.

    Raises:
        PipelineError: the directory exists, cannot be made, or has a name that Spark refuses.
    """
    name = directory.name
    if not _NAME.match(name):
        raise PipelineError(
            f"a pipeline cannot be named {name!r}: begin with a letter, and use letters, digits, "
            "'-' and '_'"
        )
    if directory.exists():
        raise PipelineError(f"{directory} exists already: name a new directory")
    storage = directory.absolute() / "pipeline-storage"
    files = {
        directory / "spark-pipeline.yml": _SPEC.format(name=name, storage=storage.as_uri()),
        directory / "transformations" / "orders.py": _ORDERS,
    }
    try:
        for each in (storage, *(path.parent for path in files)):
            each.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_text(text)
    except OSError as error:
        raise PipelineError(f"{directory} cannot be made: {error}") from None
    return list(files)
