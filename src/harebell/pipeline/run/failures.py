"""Errors of a pipeline or a statement: their sentences, and none of Spark's tracebacks."""

from __future__ import annotations

import logging
import re
import sys
from typing import Any

from harebell.client.errors import ConnectionFailed, InvalidPath, NotAllowed
from harebell.spark.failure_sentences import sentence_of

_OUTSIDE = (ConnectionFailed, InvalidPath, NotAllowed)
_RAISED_OUTSIDE = re.compile(
    r"^harebell\.client\.errors\.(?:ConnectionFailed|ConnectTimeout|AuthenticationFailed|"
    r"ProtocolMismatch|InvalidPath|NotAllowed): ",
    re.MULTILINE,
)
_STREAMING = "sql.execution.streaming"
_TRACEBACK_LOGGERS = (
    *(f"{_STREAMING}.{name}" for name in ("MicroBatchExecution", "runtime.MicroBatchExecution")),
    *("sql.execution.datasources.v2.AppendDataExec", "scheduler.TaskSetManager"),
    *("executor.Executor", "util.Utils"),
    *(f"sql.execution.datasources.{name}" for name in ("FileFormatWriter", "WriteFilesExec")),
)
"""Loggers of Spark that print a traceback for a failed query or job."""
_HADOOP_LOGGER = "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter"


def suppress_tracebacks(session: Any = None) -> None:
    """Suppress Spark's tracebacks for errors that are reported in one sentence.

    Args:
        session: of the JVM that logs them; None for PySpark's own log of errors in SQL.
    """
    from pyspark.logger import PySparkLogger

    # Py4J logs a call whose JVM has ended before it raises, at the root and in its own loggers.
    logging.getLogger().addFilter(_is_no_lost_call)
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    # Over Spark Connect there is no JVM here.
    jvm = getattr(session, "_jvm", None)
    if jvm is not None:
        log4j = jvm.org.apache.logging.log4j
        names = [f"org.apache.spark.{name}" for name in _TRACEBACK_LOGGERS]
        for name in (*names, _HADOOP_LOGGER):
            log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def _is_no_lost_call(record: logging.LogRecord) -> bool:
    """False for the traceback of a call to a JVM that has ended, whose caller gets the error."""
    error = record.exc_info[1] if record.exc_info else None
    return not type(error).__module__.startswith("py4j.")


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the exception classes of Spark, if it was imported."""
    module = sys.modules.get("pyspark.errors")
    return () if module is None else (module.PySparkException,)


def reason_of(error: BaseException) -> str:
    """Return the sentence that explains an error."""
    return sentence_of(str(error).strip() or type(error).__name__)


def unreached(error: BaseException | None) -> bool:
    """True if a run failed because the broker was unreachable or refused the login."""
    while error is not None:
        # In Spark's text the class of the error stands at the start of a line within a traceback.
        if isinstance(error, _OUTSIDE) or _RAISED_OUTSIDE.search(str(error)):
            return True
        # Spark has the error of a Python process as text only, and may wrap it again.
        error = error.__cause__ or error.__context__
    return False
