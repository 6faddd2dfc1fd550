"""Replay rows of a table so that each is published once, whatever is killed.

    rows in their order   | chunk 0 | chunk 1 | chunk 2 | ...
                            staged and committed by the broker under the number of the chunk

The broker stores the number of the last chunk together with its messages, and the directory of the
replay stores what the chunks are made of: the files of the table, the selection and the size of a
chunk. A replay that is started again with the same directory continues with the first chunk that
the broker does not have.
"""

from __future__ import annotations

import itertools
import json
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harebell.client.errors import AMQPError
from harebell.client.url import URL
from harebell.pipeline.builtin.pinned_table import PinnedTable
from harebell.pipeline.builtin.replaying import Choice, chosen, messages_of
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.sinks.staging import store
from harebell.spark.options.sink_options import EXACTLY_ONCE, SinkOptions
from harebell.spark.options.values import OptionError
from harebell.spark.writing import staged
from harebell.spark.writing.reconnecting import run_reconnecting
from harebell.spark.writing.sink_schema import message_columns
from harebell.spark.writing.write_target import SinkError, Task, TaskResult, WriteTarget

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

_CHUNK = 5_000
_FILE = "replay.json"
_NEEDS = {EXACTLY_ONCE: "stage"}


@dataclass(frozen=True)
class Replay:
    """A replay, as its directory stores it.

    Args:
        identity: name of its publisher.
        table: what is replayed.
        choice: which of its rows.
        exchange: where they go.
        routing_key: for all rows; None uses that of each row.
        chunk: number of rows that are committed together.
    """

    identity: str
    table: PinnedTable
    choice: Choice
    exchange: str
    routing_key: str | None
    chunk: int


def open_replay(
    checkpoint: Path,
    table: Callable[[], PinnedTable],
    choice: Choice,
    exchange: str,
    routing_key: str | None,
    rate: float,
) -> Replay:
    """Return the replay of a directory; begin one if it has none.

    Args:
        checkpoint: the directory.
        table: returns the table, as it is now.
        choice: which rows.
        exchange: where they go.
        routing_key: for all rows; None uses that of each row.
        rate: most messages per second; 0 for no limit.

    Raises:
        PipelineError: the directory has another replay, or cannot be used.
    """
    file = checkpoint / _FILE
    try:
        stored: dict[str, Any] | None = json.loads(file.read_text())
    except FileNotFoundError:
        stored = None
    except (OSError, ValueError) as error:
        raise PipelineError(f"the replay in {file} cannot be read: {error}") from None
    if stored is not None:
        stored["table"]["files"] = tuple(stored["table"]["files"])
        replay = Replay(
            **stored
            | {"table": PinnedTable(**stored["table"]), "choice": Choice(**stored["choice"])}
        )
        if (replay.choice, replay.exchange, replay.routing_key) != (choice, exchange, routing_key):
            raise PipelineError(
                f"{checkpoint} has a replay of other rows or to another exchange: repeat its "
                "flags, or use another directory for a new replay"
            )
        return replay
    # A chunk is published at once, so a slow replay has chunks of a second.
    chunk = max(1, min(_CHUNK, int(rate))) if rate else _CHUNK
    fresh = Replay(f"replay/{uuid.uuid4()}", table(), choice, exchange, routing_key, chunk)
    try:
        store(file, asdict(fresh))
    except OSError as error:
        raise PipelineError(
            f"the directory {checkpoint} cannot be used: {error.strerror}"
        ) from None
    return fresh


def replay_once(
    spark: SparkSession, replay: Replay, url: URL, rate: float, progress: Callable[[int], None]
) -> tuple[int, int]:
    """Publish the rows that the broker does not have.

    Args:
        spark: the session.
        replay: which rows go where, and how many of them are published.
        url: of the broker.
        rate: most messages per second; 0 for no limit.
        progress: called after each chunk with the number of messages so far.

    Returns:
        Number of messages that were published, and of those that were there before.

    Raises:
        PipelineError: it could not go on; nothing of the current chunk is published.
    """
    frame = messages_of(chosen(replay.table.frame(spark), replay.choice), replay.routing_key)
    options = SinkOptions(url=url, exchange=replay.exchange, delivery=EXACTLY_ONCE)
    try:
        columns = message_columns(
            frame.schema, ignore_unknown=True, has_routing_key=False, has_exchange=True
        )
        target = WriteTarget(options, columns)
        return _published(frame, replay, target, rate, progress)
    except (SinkError, OptionError, AMQPError) as error:
        raise PipelineError(
            f"{error}; the same command goes on where this one ended, and publishes nothing twice"
        ) from error


def _published(
    frame: DataFrame,
    replay: Replay,
    target: WriteTarget,
    rate: float,
    progress: Callable[[int], None],
) -> tuple[int, int]:
    run = str(uuid.uuid4())
    with target.connect("replay") as connection:
        target.mode(connection, EXACTLY_ONCE, _NEEDS)
        channel = connection.channel(confirms=False)
        # Opening fences another process with the same directory, and names the first missing chunk.
        first = channel.stage_open(replay.identity, run)
    before = first * replay.chunk
    rows = frame.offset(before) if before else frame
    done = 0
    began = time.monotonic()
    for number, chunk in enumerate(_chunks(rows, replay.chunk, target), first):
        task = Task(replay.identity, run, number, 0, 0)
        _write(target, task, chunk)
        done += chunk.num_rows
        progress(before + done)
        ahead = done / rate - (time.monotonic() - began) if rate else 0.0
        if ahead > 0:
            time.sleep(ahead)
    if before and not done:
        # The last chunk may have had fewer rows than the others.
        before = min(before, frame.count())
    return done, before


def _write(target: WriteTarget, task: Task, chunk: pa.RecordBatch) -> None:
    result = TaskResult(EXACTLY_ONCE, task)
    writer = staged.StagedWriter(target, iter((chunk,)), result)
    try:
        run_reconnecting(target, "replay", writer.run, lambda: writer.progress, known=True)
        staged.commit(target, task, [result], forget=False)
    except (AMQPError, SinkError):
        # Without an answer it may be committed, and then nothing is staged any more.
        with suppress(AMQPError):
            staged.abort(target, task)
        raise


def _chunks(frame: DataFrame, size: int, target: WriteTarget) -> Iterator[pa.RecordBatch]:
    """Yield the rows in their order, as record batches of one size."""
    import pyarrow as pa
    from pyspark.sql import functions as f

    schema = target.columns.schema
    names = target.columns.names
    if "timestamp" in target.columns.fields:
        # A datetime would be in the zone of this process, and ends with the year 9999.
        micros = f.unix_micros("properties.timestamp")
        frame = frame.withColumn("properties", f.col("properties").withField("timestamp", micros))
    rows = frame.select(*names).toLocalIterator(prefetchPartitions=True)
    while batch := list(itertools.islice(rows, size)):
        columns = []
        for name in names:
            values = [_value(row[name]) for row in batch]
            columns.append(pa.array(values, schema.field(name).type))
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _value(value: Any) -> Any:
    """Return a value of a row as Arrow takes it."""
    if isinstance(value, bytearray):
        return bytes(value)
    if isinstance(value, dict):
        return list(value.items())
    return value.asDict() if hasattr(value, "asDict") else value
