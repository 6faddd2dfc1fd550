"""`harebell pipeline explain`: describe a pipeline in sentences, without Spark or a broker."""

from __future__ import annotations

from collections.abc import Iterator

from harebell.pipeline.sinks.iceberg_catalog import place_of
from harebell.pipeline.spec.description import MANY, Body, Description, Sink, Source, Step

_READ = {
    "binary": "bodies as they are, in value",
    "text": "bodies as text, in data",
    "json": "bodies as JSON, in data",
}
_BAD = {
    "fail": "a body that is not so stops the pipeline",
    "drop": "a body that is not so is left out",
}


def explain(pipeline: Description) -> str:
    """Return the description of a pipeline, line by line."""
    return "\n".join(_lines(pipeline))


def _lines(pipeline: Description) -> Iterator[str]:
    yield f"pipeline {pipeline.name}"
    for source in pipeline.sources:
        yield from _source(source)
    for step in pipeline.steps:
        yield from _step(step)
    for sink in pipeline.sinks:
        yield from _sink(sink)
    yield f"  starts a micro-batch {pipeline.trigger}"
    yield f"  remembers in {pipeline.checkpoint}"
    if pipeline.per_batch:
        why = (
            "bad rows go somewhere of their own"
            if pipeline.sorts_bad_rows
            else "its sinks take different views"
        )
        yield f"  runs its steps on one micro-batch at a time, because {why}"
    elif pipeline.stateful:
        yield f"  keeps state from one micro-batch to the next, and writes in mode {pipeline.mode}"
    yield f"  runs on {pipeline.master or 'this machine'}"


def _source(source: Source) -> Iterator[str]:
    yield f"  reads {source.what} as {source.name}: {_READ[source.body.format]}"
    if source.body.format == "json":
        each = ", a row for each of its objects" if source.body.objects == MANY else ""
        yield f"    data is {source.body.schema}{each}"
    if source.body.format != "binary":
        yield f"    {_bad(source.body)}"
    if source.watermark is not None:
        yield f"    rows are late by at most {source.watermark.delay}, by {source.watermark.column}"


def _bad(body: Body) -> str:
    if body.dead_letter is None:
        return _BAD[body.on_error]
    key = body.dead_letter.routing_key
    # Behind the default exchange the key is the name of a queue, which the sentence has already.
    keyed = f" with the key {key}" if key and body.dead_letter.exchange else ""
    return f"a body that is not so goes to {body.dead_letter}{keyed}, with the reason"


def _step(step: Step) -> Iterator[str]:
    # In one line: SQL in a YAML file mostly has several.
    what = f"calls {step.python} on {step.source}" if step.python else " ".join(step.sql.split())
    yield f"  makes {step.name}: {what}"
    if step.watermark is not None:
        yield f"    rows are late by at most {step.watermark.delay}, by {step.watermark.column}"


def _sink(sink: Sink) -> Iterator[str]:
    which = f" where {sink.where}" if sink.where else ""
    yield f"  writes {sink.source}{which} to {_target(sink)}"


def _target(sink: Sink) -> str:
    if sink.kind == "console":
        return f"the console, {sink.options['rows']} rows of each micro-batch"
    if sink.queue:
        return f"queue {sink.queue}"
    if sink.kind == "exchange":
        key = sink.options.get("routingKeyExpression")
        where = f"exchange {sink.target}" if sink.target else "the default exchange"
        return f"{where}, routing key {key or 'as in the column routing_key'}"
    by = f", partitioned by {', '.join(sink.partition_by)}" if sink.partition_by else ""
    once = "each micro-batch once"
    if sink.options.get("mode") == "overwrite":
        once = "each micro-batch in place of the one before"
    # Spark has the values of options as text, that of a switch too.
    if sink.options.get("mergeSchema") == "true":
        once += ", with new columns"
    return f"{_KINDS[sink.kind]} {sink.target}{_catalog(sink)}{by}, {once}"


_KINDS = {"delta": "Delta table", "iceberg": "Iceberg table", "parquet": "Parquet files"}


def _catalog(sink: Sink) -> str:
    return f" of {place_of(sink.options).shown}" if sink.kind == "iceberg" else ""
