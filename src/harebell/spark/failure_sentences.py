"""Reduce an error of Spark to one sentence.

Spark wraps an error of Python in an error of Java in an error of Python, with all tracebacks in
the text. The sentence is in the last line of the innermost traceback, or in the first line of an
error of Spark itself.
"""

from __future__ import annotations

import os
import re
import sys

_RAISED = re.compile(
    # Any class of Harebell; classes of others by the name Error or Exception.
    r"^(?:harebell\.[\w.]+: (?P<said>.+)"
    r"|(?:(?:[\w.]+\.)?(?=\w+: ))?(?P<other>\w+(?:Error|Exception))(?:: (?P<told>.+))?)$"
)
_CLASS = re.compile(r"^\[([A-Z0-9_.]+)\] ")
_NO_FORMAT = re.compile(r"\[DATA_SOURCE_NOT_FOUND\][^\n]* harebell\b")
_NO_PACKAGE = re.compile(r"\[(AVRO|PROTOBUF)_NOT_LOADED")
_NOISE = re.compile(r" (?:SQLSTATE: \w+|SQLSTATE: \w+\s*;.*)$")
_LONGEST = 1_000
_CALLED = re.compile(r"An error occurred while calling \w+\.\w+\.")
_CAUSE = re.compile(r"^(?:Caused by: |: )(?:[\w$]+\.)+[\w$]*(?:Exception|Error): (?P<said>.+)$")
_JAVA = re.compile(r"^(?:[a-z]\w*\.){2,}[\w.$]*(?:Exception|Error): ")
_JVM_PART = "\nJVM stacktrace:\n"
"""What follows is the same error as the JVM of a Spark Connect server saw it."""
_WRAPPERS = (
    *("StreamingQueryException", "PythonException", "Py4JJavaError", "Py4JException"),
    *("SparkException", "PySparkRuntimeError"),
)
"""Classes that only wrap another error."""


def sentence_of(text: str) -> str:
    """Return the sentence that explains an error, of the text of the error."""
    if _NO_FORMAT.search(text):
        return _format_not_found()
    package = _NO_PACKAGE.search(text)
    if package is not None:
        return _package_missing(package[1].lower())
    text = text.partition(_JVM_PART)[0]
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    matches = [match for line in lines if (match := _RAISED.match(line)) is not None]
    # The innermost error is the last one; around it are classes that only wrap it.
    ours = [match for match in matches if match["other"] not in _WRAPPERS]
    sentence = _said(ours[-1]) if ours and "Traceback" in text else _JAVA.sub("", lines[0])
    if _CALLED.fullmatch(sentence):
        # An error of Java, told by a call without a name: its deepest cause says more.
        causes = [match for line in lines if (match := _CAUSE.match(line)) is not None]
        sentence = causes[-1]["said"] if causes else sentence
    return _NOISE.sub("", _CLASS.sub("", sentence)).strip()[:_LONGEST]


def _said(raised: re.Match[str]) -> str:
    """Return what an error of Python says; with its class, if that is a word or nothing."""
    text = raised["said"] or raised["told"]
    if raised["said"] or (text and " " in text):
        return text or ""
    return f"{raised['other']}: {text}" if text else str(raised["other"])


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
