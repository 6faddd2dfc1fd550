"""Reduce an error of Spark to one sentence.

Spark wraps an error of Python in an error of Java in an error of Python, with all tracebacks in
the text. The sentence is in the last line of the innermost traceback, or in the first line of an
error of Spark itself.
"""

from __future__ import annotations

import logging
import os
import re
import sys
from typing import Any

from harebell.client.errors import ConnectionFailed, InvalidPath, NotAllowed

_RAISED = re.compile(
    # Any class of Harebell; classes of others by the name Error or Exception.
    r"^(?:harebell\.[\w.]+|(?:[\w.]+\.)?(?P<other>\w+(?:Error|Exception))): (?P<said>.+)$"
)
_CLASS = re.compile(r"^\[([A-Z0-9_.]+)\] ")
_OUTSIDE = (ConnectionFailed, InvalidPath, NotAllowed)
_RAISED_OUTSIDE = re.compile(
    r"^harebell\.client\.errors\.(?:ConnectionFailed|ConnectTimeout|AuthenticationFailed|"
    r"ProtocolMismatch|InvalidPath|NotAllowed): ",
    re.MULTILINE,
)
_NO_FORMAT = re.compile(r"\[DATA_SOURCE_NOT_FOUND\][^\n]* harebell\b")
_NO_PACKAGE = re.compile(r"\[(AVRO|PROTOBUF)_NOT_LOADED")
_NOISE = re.compile(r" (?:SQLSTATE: \w+|SQLSTATE: \w+\s*;.*)$")
_LONGEST = 1_000
_STREAMING = "sql.execution.streaming"
_TRACEBACK_LOGGERS = (
    *(f"{_STREAMING}.{name}" for name in ("MicroBatchExecution", "runtime.MicroBatchExecution")),
    *("sql.execution.datasources.v2.AppendDataExec", "scheduler.TaskSetManager"),
    *("executor.Executor", "util.Utils"),
    *(f"sql.execution.datasources.{name}" for name in ("FileFormatWriter", "WriteFilesExec")),
)
"""Loggers of Spark that print a traceback for a failed query or job."""
_HADOOP_LOGGER = "org.apache.hadoop.mapreduce.lib.output.FileOutputCommitter"
_CALLED = re.compile(r"An error occurred while calling \w+\.\w+\.")
_CAUSE = re.compile(r"^(?:Caused by: |: )(?:[\w$]+\.)+[\w$]*(?:Exception|Error): (?P<said>.+)$")


def suppress_tracebacks(session: Any = None) -> None:
    """Suppress Spark's tracebacks for errors that are reported in one sentence.

    Args:
        session: of the JVM that logs them; None for PySpark's own log of errors in SQL.
    """
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)
    # Over Spark Connect there is no JVM here.
    jvm = getattr(session, "_jvm", None)
    if jvm is not None:
        log4j = jvm.org.apache.logging.log4j
        names = [f"org.apache.spark.{name}" for name in _TRACEBACK_LOGGERS]
        for name in (*names, _HADOOP_LOGGER):
            log4j.core.config.Configurator.setLevel(name, log4j.Level.OFF)


def spark_errors() -> tuple[type[Exception], ...]:
    """Return the exception classes of Spark, if it was imported."""
    found = sys.modules.get("pyspark.errors")
    return () if found is None else (found.PySparkException,)


def reason_of(error: BaseException) -> str:
    """Return the sentence that explains an error."""
    text = str(error).strip() or type(error).__name__
    if _NO_FORMAT.search(text):
        return _format_not_found()
    package = _NO_PACKAGE.search(text)
    if package is not None:
        return _package_missing(package[1].lower())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [match for line in lines if (match := _RAISED.match(line)) is not None]
    ours = [match for match in found if match["other"] not in _WRAPPERS]
    sentence = ours[-1]["said"] if ours and "Traceback" in text else lines[0]
    if _CALLED.fullmatch(sentence):
        # An error of Java, told by a call without a name: its deepest cause says more.
        causes = [match for line in lines if (match := _CAUSE.match(line)) is not None]
        sentence = causes[-1]["said"] if causes else sentence
    return _NOISE.sub("", _CLASS.sub("", sentence)).strip()[:_LONGEST]


def _format_not_found() -> str:
    """Say why Spark does not find the format, which Python processes of Spark look for."""
    python = os.environ.get("PYSPARK_PYTHON", "python3")
    return (
        "Spark does not find the format harebell, for which it asks the Python that the variable "
        f"PYSPARK_PYTHON names, here {python}; over Spark Connect it is that of the server. Set it "
        f"to a Python that has Harebell, such as {sys.executable}, or run there: "
        "pip install 'harebell[spark]'"
    )


def _package_missing(name: str) -> str:
    """Say how a session gets a package of Spark that PySpark does not contain."""
    from pyspark import __version__

    return (
        f"from_{name} and to_{name} are in Spark's package spark-{name}, which this session does "
        "not have: start it with the setting "
        f"spark.jars.packages=org.apache.spark:spark-{name}_2.13:{__version__}"
    )


def unreached(error: BaseException | None) -> bool:
    """True if a run failed because the broker was unreachable or refused the login."""
    while error is not None:
        if isinstance(error, _OUTSIDE) or _RAISED_OUTSIDE.search(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False


_WRAPPERS = (
    *("StreamingQueryException", "PythonException", "Py4JJavaError", "Py4JException"),
    *("SparkException", "PySparkRuntimeError"),
)
"""Classes that only wrap another error."""
