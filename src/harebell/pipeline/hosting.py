"""Run pipelines in one driver: a Spark session, its runs, and their stop.

A JVM takes seconds to start and half a gigabyte, so pipelines that are started together share one.
SIGTERM and SIGINT let running micro-batches end; a second signal does not wait.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from harebell.base.errors import HarebellError
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.limits import PIPELINE_POLL_SECONDS, PIPELINE_SAME_SIGNAL_SECONDS
from harebell.pipeline.registry import PipelineEntry, PipelineState
from harebell.pipeline.run.failures import reason_of, suppress_tracebacks, unreached
from harebell.pipeline.run.locking import CheckpointLock
from harebell.pipeline.run.running import PipelineRun
from harebell.pipeline.run.serving import serving
from harebell.pipeline.spec.description import Description
from harebell.pipeline.views import View
from harebell.spark.runtime.masters import CONNECT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from harebell.spark.reporting import QueryReporter


def host(
    pipelines: Sequence[Description],
    registry: Path,
    view: View,
    settings: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    metrics: tuple[str, int] | None = None,
) -> list[PipelineState]:
    """Run pipelines until all have ended; return their final states.

    Args:
        pipelines: what to run.
        registry: directory where other processes read the states.
        view: shows them.
        settings: of Spark, overriding those of the pipelines.
        spark: a session to use; None starts one, and stops it at the end.
        metrics: host and port of the Prometheus endpoint; None for no endpoint.

    Raises:
        PipelineError: one cannot start: its checkpoint is locked, or a step is invalid.
    """
    with ExitStack() as held:
        entries = [held.enter_context(PipelineEntry(registry, each.name)) for each in pipelines]
        # All locks come before Spark, which takes seconds: a second start fails at once.
        for each in pipelines:
            held.enter_context(CheckpointLock(each.checkpoint, each.name))
        states = [_begun(each) for each in pipelines]
        for entry, state in zip(entries, states, strict=True):
            entry.write(state)
        try:
            if metrics is not None:
                # Before Spark, which takes seconds: a port in use is reported at once.
                view.say(f"metrics: {held.enter_context(serving(metrics, lambda: states))}")
            session = spark or held.enter_context(_session(pipelines, settings or {}))
            runs = [
                PipelineRun(
                    pipeline,
                    session,
                    state,
                    entry,
                    view.say,
                    held.enter_context(_reports(pipeline)),
                )
                for pipeline, state, entry in zip(pipelines, states, entries, strict=True)
            ]
            held.enter_context(view)
            _run_and_settle(pipelines, runs, session, view)
        except BaseException as error:
            for entry, state in zip(entries, states, strict=True):
                _fail(entry, state, error)
            raise
    return states


def _run_and_settle(
    pipelines: Sequence[Description],
    runs: Sequence[PipelineRun],
    session: SparkSession,
    view: View,
) -> None:
    from harebell.spark.runtime.jvm_end import named_jvm_end

    try:
        with named_jvm_end(session):
            _run(runs, view)
    # If one does not start, those before it may have finished micro-batches already.
    except Exception:
        _settle(pipelines)
        raise
    # While the checkpoints are still locked; the claims outlive the query.
    _settle(pipelines)


def _fail(entry: PipelineEntry, state: PipelineState, error: BaseException) -> None:
    """Note why a pipeline has failed, unless it ended by itself.

    The registry must not show a pipeline as running whose driver gives up.
    """
    if state.state in ("ended", "failed"):
        return
    state.state, state.error = "failed", reason_of(error)
    state.unreached = unreached(error)
    # A registry that cannot be written, as on a full disk, must not hide why the pipeline failed.
    with suppress(PipelineError):
        entry.write(state)


@contextmanager
def _reports(pipeline: Description) -> Iterator[QueryReporter | None]:
    """Yield what reports to the broker of the first source; None if the pipeline does not report.

    The last report is sent at the end.
    """
    if not pipeline.report:
        yield None
        return
    from harebell.spark.options.source_options import parse
    from harebell.spark.reporting import QueryReporter

    reporter = QueryReporter(parse(pipeline.sources[0].options).url)
    try:
        yield reporter
    finally:
        reporter.close()


def _settle(pipelines: Sequence[Description]) -> None:
    from harebell.pipeline.run.logged_claims import commit_logged_claims

    for each in pipelines:
        commit_logged_claims(each)


def _begun(pipeline: Description) -> PipelineState:
    file = "" if pipeline.file is None else str(pipeline.file.resolve())
    now = time.time()
    return PipelineState(pipeline.name, file, os.getpid(), started=now, updated=now)


def _run(runs: Sequence[PipelineRun], view: View) -> None:
    started: list[PipelineRun] = []
    with _signals() as stopping:
        try:
            for run in runs:
                run.start()
                started.append(run)
        except PipelineError:
            # Pipelines of one command run together or not at all.
            for run in started:
                run.stop()
                run.wait()
            raise
        active = list(started)
        while active:
            if stopping.is_set():
                for run in active:
                    run.stop()
            active = [run for run in active if run.step()]
            view.show(run.state for run in runs)
            if active:
                # A set event does not wait: without the sleep the loop would spin until the last
                # micro-batch ends.
                if stopping.is_set():
                    time.sleep(0.1)
                else:
                    stopping.wait(PIPELINE_POLL_SECONDS)


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Yield an event that SIGTERM and SIGINT set; the second signal ends the process as usual.

    A signal that comes right after the first is the same one: `timeout` sends it to its child, and
    again to the group.
    """
    stopping = threading.Event()
    # Python sets handlers of signals in the main thread only.
    if threading.current_thread() is not threading.main_thread():
        yield stopping
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    first = 0.0

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if not stopping.is_set():
            first = time.monotonic()
            stopping.set()
        elif time.monotonic() - first < PIPELINE_SAME_SIGNAL_SECONDS:
            return
        elif number == signal.SIGINT:
            _leave(number, frame)
        else:
            signal.signal(number, before[signal.SIGTERM])
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, handle)
    try:
        yield stopping
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _leave(_number: int, _frame: FrameType | None) -> None:
    """End at the second Ctrl-C, in the middle of a call of the JVM, whose libraries log that.

    PySpark's own handler would begin another call within it.
    """
    logging.disable(logging.CRITICAL)
    raise KeyboardInterrupt


@contextmanager
def session(
    name: str, settings: Mapping[str, str], *, short_lived: bool = False
) -> Iterator[SparkSession]:
    """Yield a session of Spark, stopped at the end; an active one is used and not stopped.

    Args:
        name: of the application.
        settings: override the defaults.
        short_lived: whether fast start matters more than throughput over hours.

    Raises:
        PipelineError: Spark cannot be started.
    """
    try:
        from harebell.spark.runtime.jvm_end import jvm_code, named_jvm_end
        from harebell.spark.session import build_session
    except ImportError:
        raise PipelineError("this needs Spark: pip install 'harebell[spark]'") from None
    active = active_session()
    if active is not None:
        yield active
        return
    try:
        opened = build_session(name, short_lived=short_lived, settings=settings, quiet=True)
    except HarebellError as error:
        raise PipelineError(str(error)) from None
    suppress_tracebacks(opened)
    try:
        with named_jvm_end(opened):
            yield opened
    finally:
        # A call to a JVM that has ended would only raise another error.
        if jvm_code(opened) is None:
            with named_jvm_end(opened):
                opened.stop()


def active_session() -> SparkSession | None:
    """Return the active session of this program, in a notebook for example."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        return None
    return SparkSession.getActiveSession()


def _session(
    pipelines: Sequence[Description], settings: Mapping[str, str]
) -> AbstractContextManager[SparkSession]:
    """Return a session for all pipelines.

    Raises:
        PipelineError: it would be one of Spark Connect.
    """
    chosen: dict[str, str] = {}
    for pipeline in pipelines:
        chosen |= pipeline.settings
        if pipeline.master:
            chosen["spark.master"] = pipeline.master
    chosen |= settings
    # Before the session is made: sinks would fail only with the first micro-batch.
    for name in ("spark.master", "spark.remote"):
        if chosen.get(name, "").startswith(CONNECT):
            raise PipelineError(
                f"pipelines cannot run over Spark Connect ({chosen[name]}): their sinks write in "
                "the program of the driver, and that is the server's; use the cluster's own "
                "address (spark://HOST:PORT, yarn, k8s://...) or run them here"
            )
    names = " ".join(pipeline.name for pipeline in pipelines)
    return session(names, chosen)
