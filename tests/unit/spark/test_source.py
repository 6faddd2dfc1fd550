"""The data source as Spark finds it; what it does with a broker is seen in tests/spark."""

from __future__ import annotations

import pickle
import traceback

import pytest
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StringType, StructField, StructType

from harebell.spark.options.source_options import OptionError
from harebell.spark.reading.refused_reader import RefusedReader
from harebell.spark.schema import MESSAGE, SchemaError
from harebell.spark.source import QueueSource
from pyspark_harebell import DefaultSource


def test_spark_finds_the_format_by_the_name_of_the_package() -> None:
    assert DefaultSource.name() == "harebell"
    assert issubclass(DefaultSource, DataSource)


def test_wrong_options_are_refused_at_once() -> None:
    with pytest.raises(OptionError, match="did you mean queue"):
        QueueSource({"queu": "orders"})


def test_columns_can_be_left_out_by_option() -> None:
    assert QueueSource({"queue": "q"}).schema() == MESSAGE
    slim = QueueSource({"queue": "q", "includeHeaders": "false", "includeProperties": "false"})
    assert "headers" not in slim.schema().names
    assert "properties" not in slim.schema().names


def test_a_schema_with_an_unknown_column_is_refused_by_the_reader() -> None:
    source = QueueSource({"queue": "q"})
    wrong = StructType([*MESSAGE.fields, StructField("colour", StringType())])
    with pytest.raises(SchemaError, match="no column colour"):
        source.reader(wrong)
    with pytest.raises(SchemaError, match="no column colour"):
        source.streamReader(wrong).initialOffset()


def test_a_refused_stream_tells_why_whatever_spark_asks_first_and_can_be_stopped() -> None:
    # Spark stops the reader of a query that failed, and would show an error of that instead.
    reader = QueueSource({"queue": "q", "endingOffsets": "latest"}).streamReader(MESSAGE)
    assert isinstance(reader, RefusedReader)
    for asked in (
        reader.initialOffset,
        reader.prepareForTriggerAvailableNow,
        reader.getDefaultReadLimit,
        lambda: reader.partitions({}, {}),
        lambda: reader.latestOffset({}, ReadAllAvailable()),
    ):
        with pytest.raises(OptionError, match="a streaming query has no end"):
            asked()
    reader.stop()


def test_errors_reach_spark_without_the_calls_that_led_to_them() -> None:
    source = QueueSource({"queue": "q", "columns": "kafk"})
    with pytest.raises(OptionError) as caught:
        source.schema()
    shown = "".join(traceback.format_exception(caught.value))
    assert "source_options.py" not in shown
    assert shown.endswith("the option columns must be amqp or kafka, not 'kafk'\n")


def test_a_batch_read_takes_filters_only_if_asked() -> None:
    # Spark refuses a reader that has the method while its own setting is off.
    plain = QueueSource({"queue": "q"}).reader(MESSAGE)
    assert type(plain).pushFilters is DataSourceReader.pushFilters
    filtering = QueueSource({"queue": "q", "pushdown": "true"}).reader(MESSAGE)
    assert type(filtering).pushFilters is not DataSourceReader.pushFilters


def test_an_option_of_the_other_kind_of_read_is_refused() -> None:
    with pytest.raises(OptionError, match=r"spark\.read can only peek"):
        QueueSource({"queue": "q", "delivery": "exactly-once"}).reader(MESSAGE)


def test_readers_never_carry_the_password() -> None:
    source = QueueSource({"queue": "q", "url": "amqp://alice:hunter2@there"})
    for reader in (source.streamReader(MESSAGE), source.reader(MESSAGE)):
        assert b"hunter2" not in pickle.dumps(reader)
        assert b"alice" not in pickle.dumps(reader)


def test_a_path_is_refused_with_what_says_where_to() -> None:
    with pytest.raises(OptionError, match=r"have no path: call load\(\), save\(\) and start\(\)"):
        QueueSource({"queue": "q", "path": "orders"})


def test_a_table_is_refused_with_what_works_instead() -> None:
    # What Spark 4.3 hands over for CREATE TABLE; when the table is read, it hands over nothing.
    given = {"provider": "harebell", "owner": "me", "queue": "q", "option.queue": "q"}
    with pytest.raises(OptionError, match=r"use CREATE TEMPORARY VIEW .* instead of CREATE TABLE"):
        QueueSource(given)


def test_an_unknown_option_is_answered_with_the_options_of_its_side() -> None:
    source = QueueSource({"zzz": "1"})
    with pytest.raises(
        OptionError, match="unknown option 'zzz': the options are bindingKeys"
    ) as read:
        source.schema()
    with pytest.raises(OptionError, match="unknown option 'zzz': the options are ") as written:
        source.streamWriter(MESSAGE, overwrite=False)
    assert "fetchTimeout" in str(read.value)
    assert "confirmTimeout" not in str(read.value)
    assert "confirmTimeout" in str(written.value)
    assert "fetchTimeout" not in str(written.value)
