"""What went wrong in Spark, as one sentence for people.

Spark wraps an error of Python in an error of Java in an error of Python, with the traceback of
each in the text. The sentence stands in the last line of the innermost traceback, or in the first
line of an error of Spark's own.
"""

from __future__ import annotations

import logging
import re
import sys

_RAISED = re.compile(
    # Of ours, whatever it is called; of others by what they call their errors.
    r"^(?:harebell\.[\w.]+|(?:[\w.]+\.)?(?P<other>\w+(?:Error|Exception))): (?P<said>.+)$"
)
_CLASS = re.compile(r"^\[([A-Z0-9_.]+)\] ")
_NOISE = re.compile(r" (?:SQLSTATE: \w+|SQLSTATE: \w+\s*;.*)$")
_LONGEST = 1_000


def hush() -> None:
    """Let PySpark not print the tracebacks of mistakes in SQL, which are told in a sentence."""
    from pyspark.logger import PySparkLogger

    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL)


def spark_errors() -> tuple[type[Exception], ...]:
    """What Spark raises, where it was imported; nothing else is caught by it."""
    found = sys.modules.get("pyspark.errors")
    return () if found is None else (found.PySparkException,)


def reason_of(error: BaseException) -> str:
    """The sentence."""
    text = str(error).strip() or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [match for line in lines if (match := _RAISED.match(line)) is not None]
    ours = [match for match in found if match["other"] not in _WRAPPERS]
    sentence = ours[-1]["said"] if ours and "Traceback" in text else lines[0]
    return _NOISE.sub("", _CLASS.sub("", sentence)).strip()[:_LONGEST]


_WRAPPERS = (
    *("StreamingQueryException", "PythonException", "Py4JJavaError", "Py4JException"),
    *("SparkException", "PySparkRuntimeError"),
)
"""What only passes an error on."""
