"""What Spark prints at each start is left out, line by line; what warns of something is not."""

from __future__ import annotations

import os
import warnings

import pytest

from harebell.spark.runtime.startup_lines import pass_on, silence_pandas

NOISE = b"""WARNING: Using incubator modules: jdk.incubator.vector
26/11/26 04:55:55 WARN NativeCodeLoader: Unable to load native-hadoop library for your platform... \
using builtin-java classes where applicable
Using Spark's default log4j profile: org/apache/spark/log4j2-defaults.properties
Setting default log level to "WARN".
To adjust logging level use sc.setLogLevel(newLevel). For SparkR, use setLogLevel(newLevel).
Setting Spark log level to "ERROR".
"""
SAID = b"""26/11/26 04:55:55 WARN Utils: Service 'sparkDriver' could not bind on port 0.
WARNING: Using incubator modules: jdk.incubator.vector, and a second one
OpenJDK 64-Bit Server VM warning: Insufficient space for shared memory file
no newline: \xff"""


def test_only_whole_lines_that_are_always_printed_are_left_out() -> None:
    (source, writing), (reading, target) = os.pipe(), os.pipe()
    with os.fdopen(writing, "wb") as jvm:
        jvm.write(NOISE + SAID)
    pass_on(os.fdopen(source, "rb"), target)
    os.close(target)
    with os.fdopen(reading, "rb") as found:
        assert found.read() == SAID


def test_a_jvm_whose_lines_nobody_reads_any_more_is_not_held_up() -> None:
    (source, writing), (reading, target) = os.pipe(), os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as jvm:
        jvm.write(SAID)
    pass_on(os.fdopen(source, "rb"), target)
    os.close(target)


def test_of_the_warnings_of_pyspark_only_that_of_pandas_is_ignored() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        silence_pandas()
        warnings.warn(
            "PySpark does not yet fully support pandas >= 3.0.0.", FutureWarning, stacklevel=1
        )
        with pytest.raises(FutureWarning):
            warnings.warn("PySpark will change this.", FutureWarning, stacklevel=1)
