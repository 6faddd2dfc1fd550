"""What went wrong in Spark is told in one sentence."""

from __future__ import annotations

import pytest

from harebell.pipeline.failures import reason_of

WRAPPED = """An exception was raised by the Python Proxy. Return Message:
Traceback (most recent call last):
  File "py4j/clientserver.py", line 641, in _call_proxy
    return_value = getattr(self.pool[obj_id], method)(*params)
pyspark.errors.exceptions.captured.StreamingQueryException: [STREAM_FAILED] Query failed
harebell.spark.intake.SourceError: the queue 'orders' does not exist
"""


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (WRAPPED, "the queue 'orders' does not exist"),
        (
            "[TABLE_OR_VIEW_NOT_FOUND] The table `x` cannot be found. SQLSTATE: 42P01; line 1",
            "The table `x` cannot be found.",
        ),
        ("plain", "plain"),
        ("", "ValueError"),
    ],
)
def test_the_sentence_is_found_in_what_wraps_it(text: str, sentence: str) -> None:
    assert reason_of(ValueError(text)) == sentence
