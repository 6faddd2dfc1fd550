"""The text format: labels that come back as they went in, histograms, and bounded slices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harebell.base.histogram import Histogram
from harebell.management.limits import METRICS_LINES_PER_SLICE, METRICS_SAMPLES_PER_SLICE
from harebell.management.metrics.text import (
    Metric,
    Row,
    Value,
    escaped,
    labels,
    summed,
    written,
)
from tests.unit.management.metrics.parsing import parse

READY = Metric("queue_messages_ready", "gauge", "Messages that can be delivered.")
ACKED = Metric("queue_messages_acked_total", "counter", "Acknowledgements.")
COUNTS = Metric("delivery_count", "histogram", "Failed deliveries.")

HOSTILE = [
    'a"b',
    "back\\slash",
    "line\nfeed",
    '\\n"\\"',
    "carriage\rreturn\ttab",
    "\u202eright to left",
    "a/b%2F..",
    "ö" * 127,
    "}",
    '",queue="other',
    "",
]


def text_of(metrics: list[Metric], rows: list[Row | None]) -> str:
    return b"".join(written("rabbitmq_", metrics, rows)).decode()


@pytest.mark.parametrize("name", HOSTILE, ids=ascii)
def test_a_label_comes_back_as_it_went_in(name: str) -> None:
    text = text_of([READY], [(labels(vhost="/", queue=name), (3,))])
    assert parse(text).samples == [
        ("rabbitmq_queue_messages_ready", {"vhost": "/", "queue": name}, 3.0)
    ]


def test_no_labels_are_no_braces() -> None:
    assert labels() == ""
    assert escaped("plain") == "plain"


def test_the_samples_of_a_metric_follow_each_other_below_its_type_and_help() -> None:
    rows: list[Row | None] = [('{queue="a"}', (1, 2)), None, ('{queue="b"}', (3, None))]
    assert text_of([READY, ACKED], rows) == (
        "# TYPE rabbitmq_queue_messages_ready gauge\n"
        "# HELP rabbitmq_queue_messages_ready Messages that can be delivered.\n"
        'rabbitmq_queue_messages_ready{queue="a"} 1\n'
        'rabbitmq_queue_messages_ready{queue="b"} 3\n'
        "# TYPE rabbitmq_queue_messages_acked_total counter\n"
        "# HELP rabbitmq_queue_messages_acked_total Acknowledgements.\n"
        'rabbitmq_queue_messages_acked_total{queue="a"} 2\n'
    )


def test_a_metric_without_samples_is_left_out() -> None:
    assert text_of([READY], []) == ""


def test_a_histogram_has_cumulative_buckets_a_sum_and_a_count() -> None:
    histogram = Histogram((0, 1, 2.5))
    for value in (0, 0, 1, 2, 7):
        histogram.observe(value)
    assert text_of([COUNTS], [("", (histogram,)), ('{queue="q"}', (histogram,))]) == (
        "# TYPE rabbitmq_delivery_count histogram\n"
        "# HELP rabbitmq_delivery_count Failed deliveries.\n"
        'rabbitmq_delivery_count_bucket{le="0"} 2\n'
        'rabbitmq_delivery_count_bucket{le="1"} 3\n'
        'rabbitmq_delivery_count_bucket{le="2.5"} 4\n'
        'rabbitmq_delivery_count_bucket{le="+Inf"} 5\n'
        "rabbitmq_delivery_count_sum 10\n"
        "rabbitmq_delivery_count_count 5\n"
        'rabbitmq_delivery_count_bucket{queue="q",le="0"} 2\n'
        'rabbitmq_delivery_count_bucket{queue="q",le="1"} 3\n'
        'rabbitmq_delivery_count_bucket{queue="q",le="2.5"} 4\n'
        'rabbitmq_delivery_count_bucket{queue="q",le="+Inf"} 5\n'
        'rabbitmq_delivery_count_sum{queue="q"} 10\n'
        'rabbitmq_delivery_count_count{queue="q"} 5\n'
    )


def test_a_slice_reads_few_objects_and_writes_few_lines() -> None:
    read = 0

    def rows() -> Iterator[Row]:
        nonlocal read
        for number in range(20_000):
            read += 1
            yield f'{{queue="{number}"}}', (number, number)

    before = lines = 0
    for piece in written("", [READY, ACKED], rows()):
        assert (read - before) * 2 <= METRICS_SAMPLES_PER_SLICE
        assert piece.count(b"\n") <= METRICS_LINES_PER_SLICE + 2
        assert not (piece and read < 20_000), "text comes after all was read"
        before = read
        lines += piece.count(b"\n")
    assert lines == 40_004


def test_a_sum_of_many_rows_is_made_in_slices() -> None:
    counted = Histogram((1,))
    counted.observe(3)
    rows: list[Row | None] = [("", (2, None, float(number), counted)) for number in range(1_000)]
    rows.insert(5, None)
    found = list(summed(rows, 4, largest=(2,)))
    assert found.count(None) == 1 + 1_000 * 4 // METRICS_SAMPLES_PER_SLICE
    last = found[-1]
    assert last is not None
    values: tuple[Value, ...] = tuple(last[1])
    assert values[:3] == (2_000, None, 999.0)
    assert isinstance(values[3], Histogram)
    assert values[3].counts == [0, 1_000]
    assert counted.counts == [0, 1], "the values themselves are not changed"
