"""Build Spark data frames from a description: sources with decoded bodies, steps, bad rows.

    source  --decoded-->  source, data, _bad  --sorted-->  good rows: the view `source`
                                              --sorted-->  bad rows, with the reason in _bad

Spark expressions decode the bodies, so no Python code runs per row.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.run.json_objects import parsed
from harebell.pipeline.spec.description import MANY, Body, Description, Source, Step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

FORMAT = "harebell"
DATA = "data"
BAD = "_bad"


def stream_of(spark: SparkSession, source: Source) -> DataFrame:
    """Return a source as a stream, with decoded bodies and the reason of bad rows in `_bad`."""
    options = spark.readStream.format(FORMAT).options(**source.options)
    return decoded(options.load(), source.body)


def decoded(frame: DataFrame, body: Body) -> DataFrame:
    """Decode the bodies of messages.

    This adds a column `data`, unless bodies stay binary, and a column `_bad`, which is null or
    the reason why the body could not be decoded.
    """
    from pyspark.sql import functions as f

    if body.format == "binary":
        return frame.withColumn(BAD, f.lit(None).cast("string"))
    if body.format == "text":
        text = f.expr("try_validate_utf8(CAST(value AS STRING))")
        reason = f.when(text.isNull() & f.col("value").isNotNull(), "the body is no UTF-8")
        return frame.withColumn(DATA, text).withColumn(BAD, reason)
    what = "JSON objects" if body.objects == MANY else "one JSON object"
    reason = f.when(f.col(DATA).isNull(), f"the body is not {what} with {body.schema}")
    return parsed(frame, body, DATA).withColumn(BAD, reason)


def good_rows(frame: DataFrame, source: Source) -> DataFrame:
    """Return rows with valid bodies; with `onError: fail` other rows raise an error."""
    from pyspark.sql import functions as f

    if source.body.format == "binary":
        return frame.drop(BAD)
    fine = f.col(BAD).isNull()
    if source.body.on_error == "fail":
        said = f.concat(
            *(f.lit("offset "), f.col("offset").cast("string"), f.lit(" of queue ")),
            *(f.col("queue"), f.lit(": "), f.col(BAD), f.lit(" (onError decides what then)")),
        )
        # A filter and no column: Spark drops a column that no step uses, with the error in it.
        return frame.filter(f.when(fine, True).otherwise(f.raise_error(said))).drop(BAD)
    return frame.filter(fine).drop(BAD)


def bad_rows(frame: DataFrame) -> DataFrame:
    """Return rows with invalid bodies."""
    from pyspark.sql import functions as f

    return frame.filter(f.col(BAD).isNotNull()).drop(DATA)


def with_watermark(frame: DataFrame, source: Source | Step) -> DataFrame:
    """Return rows with the watermark of a source or step, if it has one."""
    if source.watermark is None:
        return frame
    return frame.withWatermark(source.watermark.column, source.watermark.delay)


def create_step_views(spark: SparkSession, pipeline: Description) -> None:
    """Create the views of all steps; those of the sources exist."""
    for step in pipeline.steps:
        frame = _stepped(spark, step, pipeline.directory)
        with_watermark(frame, step).createOrReplaceTempView(step.name)


def _stepped(spark: SparkSession, step: Step, directory: Path) -> DataFrame:
    if step.sql:
        return spark.sql(step.sql)
    function = function_of(step.python, directory)
    frame = function(spark.table(step.source))
    if not hasattr(frame, "createOrReplaceTempView"):
        raise PipelineError(
            f"step {step.name}: {step.python} returned {type(frame).__name__}, not a DataFrame"
        )
    made: DataFrame = frame
    return made


def function_of(name: str, directory: Path) -> Any:
    """Return the function of a Python step.

    Raises:
        PipelineError: it does not exist.
    """
    module, _, attribute = name.partition(":")
    if str(directory) not in sys.path:
        sys.path.insert(0, str(directory))
    try:
        function = getattr(importlib.import_module(module), attribute, None)
    except (ImportError, SyntaxError, NameError) as error:
        raise PipelineError(f"the module {module} cannot be imported: {error}") from None
    if not callable(function):
        raise PipelineError(f"the module {module} has no function {attribute}")
    return function


def ship_modules(spark: SparkSession, pipeline: Description) -> None:
    """Send the modules of Python steps that are beside the file to executors."""
    for step in pipeline.steps:
        module = step.python.partition(":")[0].partition(".")[0]
        file = pipeline.directory / f"{module}.py"
        if module and file.is_file():
            spark.sparkContext.addPyFile(str(file))


REASON = "x-reason"
PIPELINE = "x-pipeline"
QUEUE = "x-original-queue"
KEY = "x-original-routing-key"


def as_dead_letters(frame: DataFrame, source: Source, pipeline: str) -> DataFrame:
    """Convert bad rows to dead letters: the messages, with headers for reason and origin."""
    from pyspark.sql import functions as f

    route = source.body.dead_letter
    assert route is not None, "bad rows of this source go somewhere"
    added = f.create_map(
        *(f.lit(REASON), f.col(BAD)),
        *(f.lit(PIPELINE), f.lit(pipeline)),
        *(f.lit(QUEUE), f.col("queue")),
        *(f.lit(KEY), f.col("routing_key")),
    )
    headers = added
    if "headers" in frame.columns:
        own = f.coalesce(f.col("headers"), f.create_map().cast("map<string,string>"))
        kept = f.map_filter(own, lambda name, _: ~name.isin(REASON, PIPELINE, QUEUE, KEY))
        headers = f.map_concat(kept, added)
    data_frame = frame.withColumn("headers", headers).drop(BAD)
    if route.routing_key is not None:
        data_frame = data_frame.withColumn("routing_key", f.lit(route.routing_key))
    return data_frame
