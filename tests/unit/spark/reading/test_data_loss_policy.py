"""What is lost ends the query, or is only told."""

from __future__ import annotations

import logging

import pytest

from harebell.spark.options.source_options import parse
from harebell.spark.reading.data_loss_policy import DataLoss, DataLossPolicy
from harebell.spark.reading.errors import no_queue


def test_a_loss_ends_the_query_unless_told_otherwise() -> None:
    with pytest.raises(DataLoss, match=r"^3 messages are gone; the option failOnDataLoss=false r"):
        DataLossPolicy(parse({"queue": "q"}, {})).report("3 messages are gone")


def test_a_loss_can_be_only_told(caplog: pytest.LogCaptureFixture) -> None:
    bold = DataLossPolicy(parse({"queue": "q", "failOnDataLoss": "false"}, {}))
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        bold.report("3 messages are gone")
    assert caplog.messages == ["3 messages are gone"]


def test_a_missing_queue_is_named_with_its_place() -> None:
    options = parse({"queue": "q", "url": "amqp://alice:hunter2@there/v"}, {})
    assert str(no_queue(options)) == (
        "there is no queue 'q' in the virtual host 'v' at there:5672: declare it first"
    )
