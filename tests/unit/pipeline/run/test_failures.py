"""What went wrong in Spark is told in one sentence."""

from __future__ import annotations

import sys

import pytest
from pyspark import __version__
from pyspark.errors import AnalysisException
from pyspark.logger import PySparkLogger

from harebell.cli.piping import sentences
from harebell.cli.verb import Failure, NotConnected
from harebell.client.errors import AuthenticationFailed, ConnectTimeout, NotFound
from harebell.pipeline.errors import PipelineError
from harebell.pipeline.run.failures import reason_of, suppress_tracebacks, unreached

WRAPPED = """An exception was raised by the Python Proxy. Return Message:
Traceback (most recent call last):
  File "py4j/clientserver.py", line 641, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Query failed
harebell.spark.reading.errors.SourceError: the queue 'orders' does not exist
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (WRAPPED, "the queue 'orders' does not exist"),
        (
            WRAPPED.replace(
                "errors.SourceError: the", "data_loss_policy.DataLoss: a stream, or the"
            ),
            "a stream, or the queue 'orders' does not exist",
        ),
        (
            "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found. SQLSTATE: 42P01; line 1",
            "The table `x` cannot be found.",
        ),
        (
            "An error occurred while calling o167.parquet.\n: org.apache.spark.SparkException: "
            "Job aborted\n\tat org.apache.X\nCaused by: java.io.IOException: Mkdirs failed\n\tat Y",
            "Mkdirs failed",
        ),
        (
            WRAPPED.replace("harebell.spark.reading.errors.SourceError", "KeyError").replace(
                "the queue 'orders' does not exist", "'total'"
            ),
            "KeyError: 'total'",
        ),
        (WRAPPED + "Caused by: nothing\nAssertionError", "AssertionError"),
        (WRAPPED + "\norg.apache.spark.sql.AnalysisException", "the queue 'orders' does not exist"),
        (WRAPPED + "\nJVM stacktrace:\nNullError: null", "the queue 'orders' does not exist"),
        (
            "org.apache.spark.sql.catalyst.ExtendedAnalysisException: [NO_TABLE] There is no table"
            ".\n\tat org.apache.X",
            "There is no table.",
        ),
        ("plain", "plain"),
        ("", "ValueError"),
    ],
)
def test_the_sentence_is_found_in_what_wraps_it(text: str, sentence: str) -> None:
    assert reason_of(ValueError(text)) == sentence


def test_a_python_without_harebell_is_named_with_the_variable_that_chooses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = (
        "[DATA_SOURCE_NOT_FOUND] Failed to find the data source: harebell. Make sure the provider "
        "name is correct and the package is properly registered and compatible with your Spark "
        "version. SQLSTATE: 42K02"
    )
    monkeypatch.setenv("PYSPARK_PYTHON", "other-python")
    said = reason_of(ValueError(text))
    assert "the variable PYSPARK_PYTHON names, here other-python" in said
    assert sys.executable in said
    assert "pip install 'harebell[spark]'" in said
    other = reason_of(ValueError(text.replace("harebell", "kafka")))
    assert other.startswith("Failed to find the data source: kafka.")


@pytest.mark.parametrize("name", ["avro", "protobuf"])
def test_a_package_of_spark_that_is_missing_is_named(name: str) -> None:
    said = reason_of(
        ValueError(
            f"[{name.upper()}_NOT_LOADED_SQL_FUNCTIONS_UNUSABLE] Cannot call the FROM_"
            f"{name.upper()} SQL function because the data source is not loaded.\nPlease restart"
        )
    )
    assert f"spark.jars.packages=org.apache.spark:spark-{name}_2.13:{__version__}" in said


def test_pyspark_s_own_tracebacks_are_not_printed(capfd: pytest.CaptureFixture[str]) -> None:
    names = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
    levels = [PySparkLogger.getLogger(name).level for name in names]
    suppress_tracebacks()
    try:
        for name in names:
            PySparkLogger.getLogger(name).error("a traceback of thirty thousand letters")
        assert capfd.readouterr() == ("", "")
    finally:
        for name, level in zip(names, levels, strict=True):
            PySparkLogger.getLogger(name).setLevel(level)


def test_an_error_of_spark_that_nobody_expected_is_a_sentence_of_the_command() -> None:
    with pytest.raises(Failure, match=r"^The value cannot be cast$"), sentences():
        raise AnalysisException("[CAST] The value cannot be cast SQLSTATE: 22018")
    with pytest.raises(RuntimeError, match="another"), sentences():
        raise RuntimeError("another")


def test_a_broker_that_is_not_there_or_lets_nobody_in_is_told_apart() -> None:
    assert unreached(ConnectTimeout("late"))
    assert not unreached(PipelineError("harebell.client.errors.ConnectionFailed"))
    assert not unreached(ValueError(WRAPPED))
    line = "harebell.client.errors.AuthenticationFailed: 403 ACCESS_REFUSED - Login was refused"
    assert unreached(ValueError(f"{WRAPPED}\n{line}\n"))

    def told() -> None:
        try:
            raise AuthenticationFailed("no login")
        except AuthenticationFailed as error:
            raise PipelineError(str(error)) from None

    with pytest.raises(NotConnected, match=r"^no login$"), sentences():
        told()
    with pytest.raises(Failure, match="gone"), sentences():
        raise NotFound(404, "gone")
