"""What went wrong in Spark, as one sentence for people.

Spark wraps an error of Python in an error of Java in an error of Python, with the traceback of
each in the text. The sentence stands in the last line of the innermost traceback, or in the first
line of an error of Spark's own.
"""

from __future__ import annotations

import re
from typing import Any

from harebell.pipeline.places import PipelineError

_RAISED = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception|Failed|Refused|Lost|Fenced)): (.+)$")
_CLASS = re.compile(r"^\[([A-Z0-9_.]+)\] ")
_NOISE = re.compile(r" (?:SQLSTATE: \w+|SQLSTATE: \w+\s*;.*)$")
_LONGEST = 1_000


def reason_of(error: BaseException) -> str:
    """The sentence."""
    text = str(error).strip() or type(error).__name__
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    found = [match for line in lines if (match := _RAISED.match(line)) is not None]
    ours = [match for match in found if match[1] not in _WRAPPERS]
    sentence = ours[-1][2] if ours and "Traceback" in text else lines[0]
    return _NOISE.sub("", _CLASS.sub("", sentence)).strip()[:_LONGEST]


_WRAPPERS = (
    *("StreamingQueryException", "PythonException", "Py4JJavaError", "Py4JException"),
    *("SparkException", "PySparkRuntimeError"),
)
"""What only passes an error on."""


def collected(frame: Any, rows: int) -> list[Any]:
    """The first rows of a data frame.

    Raises:
        PipelineError: Spark could not make them, in one sentence.
    """
    from pyspark.errors import PySparkException

    try:
        found: list[Any] = frame.limit(rows).collect()
    except PySparkException as error:
        raise PipelineError(reason_of(error)) from None
    return found
