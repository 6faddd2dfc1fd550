"""Bodies that could not be read, as the messages that are sent away with the reason."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.pipeline.description import Source
from harebell.pipeline.frames import BAD

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

REASON = "x-reason"
PIPELINE = "x-pipeline"
QUEUE = "x-original-queue"
KEY = "x-original-routing-key"


def as_dead_letters(frame: DataFrame, source: Source, pipeline: str) -> DataFrame:
    """The messages as they came, with headers that say why and whence they were sent away."""
    from pyspark.sql import functions as f

    route = source.body.dead_letter
    assert route is not None, "bad rows of this source go somewhere"
    told = f.create_map(
        *(f.lit(REASON), f.col(BAD)),
        *(f.lit(PIPELINE), f.lit(pipeline)),
        *(f.lit(QUEUE), f.col("queue")),
        *(f.lit(KEY), f.col("routing_key")),
    )
    headers = told
    if "headers" in frame.columns:
        own = f.coalesce(f.col("headers"), f.create_map().cast("map<string,string>"))
        kept = f.map_filter(own, lambda name, _: ~name.isin(REASON, PIPELINE, QUEUE, KEY))
        headers = f.map_concat(kept, told)
    found = frame.withColumn("headers", headers).drop(BAD)
    if route.routing_key is not None:
        found = found.withColumn("routing_key", f.lit(route.routing_key))
    return found
