"""Run a pipeline: one Spark query, whose micro-batches are written to the sinks.

    start --> the views of sources and steps --> query --foreachBatch--> sinks, one after the other
    stop  --> the running micro-batch is finished, a new one is refused, the query ends

Sinks receive every micro-batch with the query's identity and the batch's number, and skip one that
is written already: a pipeline is exactly-once when its source can replay.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.pipeline.errors import PipelineError
from harebell.pipeline.limits import PIPELINE_BAD_ROWS, PIPELINE_POLL_SECONDS, PIPELINE_STOP_SECONDS
from harebell.pipeline.registry import PipelineEntry, PipelineState
from harebell.pipeline.run import frames
from harebell.pipeline.run.failures import reason_of, unreached
from harebell.pipeline.run.frames import as_dead_letters
from harebell.pipeline.run.reported import facts_of
from harebell.pipeline.sinks.exchange import ExchangeSink
from harebell.pipeline.sinks.factory import BatchSink, check_libraries, made
from harebell.pipeline.spec.description import Description, Source
from harebell.pipeline.spec.values import interval_of
from harebell.spark.lag import waiting_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from harebell.spark.reporting import QueryReporter

_BAD_SINK = "bad-rows"


class StopAsked(Exception):
    """The pipeline was stopped: no further micro-batch begins."""


class PipelineRun:
    """One run of a pipeline.

    Args:
        pipeline: what to run.
        spark: the session; the pipeline uses its own session in the same application.
        state: the state, kept up to date.
        entry: where the state is written for other processes; None for nowhere.
        say: prints a line.
        reporter: sends the state to a broker; None for no reports.
    """

    def __init__(
        self,
        pipeline: Description,
        spark: SparkSession,
        state: PipelineState,
        entry: PipelineEntry | None,
        say: Callable[[str], None],
        reporter: QueryReporter | None = None,
    ) -> None:
        self._pipeline = pipeline
        # Views and settings are of a session: pipelines of one driver have steps of equal names.
        self._spark = spark.newSession()
        self.state = state
        self._entry = entry
        self._say = say
        self._reporter = reporter
        self._stopping = threading.Event()
        self._busy = threading.Lock()
        self._query: StreamingQuery | None = None
        self._sinks: dict[str, BatchSink] = {}
        self._error: BaseException | None = None
        self._done = -1
        self._ended = -1
        self._deadline: float | None = None

    # --- from outside ---------------------------------------------------------------------------

    def start(self) -> None:
        """Start the query.

        Raises:
            PipelineError: it cannot start: a step is invalid, for example.
        """
        try:
            self._query = self._begin()
        except Exception as error:
            raise PipelineError(f"{self._pipeline.name}: {reason_of(error)}") from error
        self._set_state("running")

    def poll(self) -> bool:
        """Update the state; return whether the query is running."""
        query = self._query
        assert query is not None, "started"
        # Asked before the progress is read: a query that has ended reports no more, so its last
        # micro-batch is counted in this call.
        running = bool(query.isActive)
        self._follow(query)
        if running:
            self._set_state("stopping" if self._stopping.is_set() else "running")
            return True
        error = self._error or query.exception()
        # StopAsked is how a stop ends the query: that is no failure.
        if error is not None and not (self._stopping.is_set() and _asked(error)):
            self.state.error, self.state.unreached = reason_of(error), unreached(error)
            self._set_state("failed")
        else:
            self._set_state("ended")
        return False

    def stop(self) -> None:
        """Stop the query after the running micro-batch."""
        self._stopping.set()

    def step(self) -> bool:
        """Update the state and handle a requested stop; return whether the query is running."""
        if not self.poll():
            return False
        if self._stopping.is_set():
            self._deadline = self._deadline or time.monotonic() + PIPELINE_STOP_SECONDS
            self._end_if_idle(late=time.monotonic() > self._deadline)
        return True

    def wait(self) -> PipelineState:
        """Wait until the query has ended."""
        while self.step():
            self._pause()
        return self.state

    def _end_if_idle(self, *, late: bool) -> None:
        """Stop the query if no micro-batch is running, or if it takes too long."""
        assert self._query is not None, "started"
        # Spark would interrupt a running micro-batch: sinks may have it then, and the commit log
        # has not, so the next start repeats it. Progress is reported after the entry in the commit
        # log: `_ended` shows that the last micro-batch written is there.
        if late or (not self._busy.locked() and self._ended >= self._done):
            self._query.stop()

    def _pause(self) -> None:
        from pyspark.errors import PySparkException

        query: Any = self._query  # its type hints require an int
        try:
            query.awaitTermination(PIPELINE_POLL_SECONDS)
        except PySparkException as error:
            # poll() reports it: the query keeps its exception.
            self._error = self._error or error

    # --- the query ------------------------------------------------------------------------------

    def _begin(self) -> StreamingQuery:
        pipeline = self._pipeline
        spark = self._spark
        check_libraries(pipeline)
        frames.ship_modules(spark, pipeline)
        read = {each.name: frames.stream_of(spark, each) for each in pipeline.sources}
        if pipeline.per_batch:
            (source,) = pipeline.sources
            final = frames.with_watermark(read[source.name], source)
        else:
            for source in pipeline.sources:
                good = frames.good_rows(read[source.name], source)
                frames.with_watermark(good, source).createOrReplaceTempView(source.name)
            frames.create_step_views(spark, pipeline)
            final = spark.table(pipeline.sinks[0].source)
        writer = (
            final.writeStream.queryName(pipeline.name)
            .option("checkpointLocation", str(pipeline.checkpoint))
            .outputMode(pipeline.mode)
            .foreachBatch(self._batch)
        )
        trigger = pipeline.trigger
        if trigger.kind == "now":
            writer = writer.trigger(availableNow=True)
        elif trigger.kind == "every":
            writer = writer.trigger(processingTime=interval_of(trigger.seconds))
        return writer.start()

    def _batch(self, frame: DataFrame, number: int) -> None:
        """Write one micro-batch; Spark calls this in its own thread."""
        with self._busy:
            # Spark has logged the offsets of this micro-batch, and plans it again after the stop.
            if self._stopping.is_set():
                raise StopAsked
            try:
                self._write(frame, number)
            # Kept here with its class: the query's own exception has it as text only. The first
            # error is the cause of those that follow.
            except BaseException as error:
                self._error = self._error or error
                raise
            self._done = number

    def _write(self, frame: DataFrame, number: int) -> None:
        sinks = self._opened()
        # With one sink the rows are computed once anyway, and need no memory.
        one = len(self._pipeline.sinks) == 1 and not self._pipeline.per_batch
        if not one:
            frame.persist()
        try:
            if self._pipeline.per_batch:
                self._send_away_bad(frame, number)
                self._make_views(frame)
            for sink in self._pipeline.sinks:
                rows = frame.sparkSession.table(sink.source) if self._pipeline.per_batch else frame
                if sink.where:
                    rows = rows.filter(sink.where)
                written = sinks[sink.name].write(rows, number)
                total = self.state.written.get(sink.name, 0) + written
                self.state.written[sink.name] = total
        finally:
            if not one:
                frame.unpersist()

    def _make_views(self, frame: DataFrame) -> None:
        (source,) = self._pipeline.sources
        frames.good_rows(frame, source).createOrReplaceTempView(source.name)
        # In the session of the frame: Spark runs a query in a clone of the session that started it.
        frames.create_step_views(frame.sparkSession, self._pipeline)

    def _send_away_bad(self, frame: DataFrame, number: int) -> None:
        (source,) = self._pipeline.sources
        if source.body.dead_letter is None:
            return
        bad = frames.bad_rows(frame)
        # A limit, as the count of all may take as long as the micro-batch.
        count = bad.limit(PIPELINE_BAD_ROWS + 1).count()
        if count > PIPELINE_BAD_ROWS:
            raise PipelineError(
                f"more than {PIPELINE_BAD_ROWS} bodies of one micro-batch could not be read: "
                "look at the schema of source.body first"
            )
        if count:
            self.state.bad += self._bad_sink(source).write(
                as_dead_letters(bad, source, self._pipeline.name), number
            )

    def _bad_sink(self, source: Source) -> BatchSink:
        if _BAD_SINK not in self._sinks:
            # A publisher of its own, so that it commits each micro-batch once, as other sinks do.
            route = source.body.dead_letter
            assert route is not None, "looked at before"
            self._sinks[_BAD_SINK] = ExchangeSink(
                route.exchange,
                f"{self._identity()}/{_BAD_SINK}",
                source.options.get("url"),
                {"mandatory": "true"},
            )
        return self._sinks[_BAD_SINK]

    def _opened(self) -> dict[str, BatchSink]:
        # Only with the first micro-batch: the identity is in the checkpoint when the query has
        # begun.
        if not self._sinks:
            query = self._identity()
            for sink in self._pipeline.sinks:
                self._sinks[sink.name] = made(sink, self._pipeline, query, self._say)
        return self._sinks

    def _identity(self) -> str:
        """Return the query's identity, which Spark stores in the checkpoint."""
        metadata = self._pipeline.checkpoint / "metadata"
        return str(json.loads(metadata.read_text())["id"])

    # --- progress -------------------------------------------------------------------------------

    def _follow(self, query: StreamingQuery) -> None:
        """Update the state with Spark's progress since the last call."""
        for progress in query.recentProgress:
            number = int(progress["batchId"])
            # A micro-batch may have no rows, such as the first of an empty queue.
            if "addBatch" in progress["durationMs"]:
                self._ended = max(self._ended, number)
            # Spark keeps its last progresses, and those of earlier calls are counted already.
            if number <= self.state.batch or not progress["numInputRows"]:
                continue
            rows = int(progress["numInputRows"])
            self.state.batch = number
            self.state.rows += rows
            self.state.batch_rows = rows
            self.state.batch_ms = int(progress["batchDuration"])
            self.state.batches += 1
            self.state.batch_seconds += self.state.batch_ms / 1000
            self.state.rate = rows * 1000 / max(self.state.batch_ms, 1)
        last = query.lastProgress
        if last is not None:
            self.state.lag = _lags(self._pipeline, last)

    def _set_state(self, state: str) -> None:
        self.state.state = state
        self.state.updated = time.time()
        if self._entry is not None:
            self._entry.write(self.state)
        if self._reporter is not None:
            self._reporter.put(self.state.name, facts_of(self.state))


def _asked(error: BaseException) -> bool:
    """True if the query ended because it was stopped."""
    # An error in foreachBatch comes back from the JVM as a text.
    return isinstance(error, StopAsked) or StopAsked.__name__ in str(error)


def _lags(pipeline: Description, progress: Any) -> dict[str, int]:
    """Return the number of unprocessed messages, by queue."""
    lags: dict[str, int] = {}
    for source, reported in zip(pipeline.sources, progress["sources"], strict=False):
        queue = source.options.get("queue", source.name)
        waiting = waiting_of(reported.get("latestOffset"), reported.get("endOffset"), queue)
        for name, count in waiting.items():
            lags[name] = lags.get(name, 0) + count
    return lags
