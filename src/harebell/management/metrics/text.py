r"""Write metrics in the text format of Prometheus, version 0.0.4, in slices.

    # TYPE rabbitmq_queue_messages_ready gauge
    # HELP rabbitmq_queue_messages_ready Messages that can be delivered.
    rabbitmq_queue_messages_ready{vhost="/",queue="orders"} 3

All samples of a metric have to follow each other, while the values of one object are read together.
So the samples are collected in a list per metric first, a slice of objects at a time:

    rows      queue 1 (ready, unacked)   queue 2 (ready, unacked)   ...
    columns   ready  [queue 1, queue 2, ...]       written one after the other
              unacked [queue 1, queue 2, ...]

In label values `\`, `"` and the line feed are escaped; there is no other escape.

Prometheus takes nothing of an answer in which a sample comes twice. Names of connections are those
that clients and proxies give, so two can be equal: the first one is written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from harebell.base.histogram import Histogram
from harebell.management.limits import METRICS_LINES_PER_SLICE, METRICS_SAMPLES_PER_SLICE

HISTOGRAM = "histogram"
HEAD = "# TYPE "
"""What the first piece of a metric begins with, and no other one."""

Value = int | float | Histogram | None
"""The value of a sample; a sample without a value is left out."""
Row = tuple[str, Sequence[Value]]
"""The labels of an object, in braces or "", and its values in the order of the metrics."""
NOT_YET = b""
"""What a slice without finished text yields."""


class Metric(NamedTuple):
    """One metric.

    Args:
        name: its name, without the prefix of the endpoint.
        kind: counter, gauge, histogram or untyped.
        help: one sentence.
    """

    name: str
    kind: str
    help: str


def escaped(text: str) -> str:
    """Return a label value without its quotes."""
    if "\\" in text:
        text = text.replace("\\", "\\\\")
    if '"' in text:
        text = text.replace('"', '\\"')
    if "\n" in text:
        text = text.replace("\n", "\\n")
    return text


def labels(**values: str) -> str:
    """Return labels in braces; "" without any."""
    if not values:
        return ""
    return "{" + ",".join([f'{name}="{escaped(text)}"' for name, text in values.items()]) + "}"


def labelled(rows: Iterable[Row | None], label: str) -> Iterator[Row | None]:
    """Yield rows with one more label, which is the first one.

    Args:
        rows: the objects; None ends a slice.
        label: its name and value, as in a text: `store="2"`.
    """
    for row in rows:
        if row is None:
            yield None
            continue
        text, values = row
        yield f"{{{label},{text[1:]}" if text else f"{{{label}}}", values


def written(
    prefix: str, metrics: Sequence[Metric], rows: Iterable[Row | None], *, all_heads: bool = False
) -> Iterator[bytes]:
    """Yield the text of some metrics; each step is one slice of work.

    Args:
        prefix: put before each name: `rabbitmq_`.
        metrics: the names, types and texts of the families.
        rows: the objects with a value for each metric; None ends a slice.
        all_heads: whether a metric without samples has its two lines all the same.
    """
    columns: list[list[str]] = [[] for _ in metrics]
    outputs = [
        (index, prefix + metric.name, column, metric.kind == HISTOGRAM)
        for index, (metric, column) in enumerate(zip(metrics, columns, strict=True))
    ]
    samples = 0
    seen: set[str] = set()
    for row in rows:
        if row is None:
            yield NOT_YET
            continue
        text, values = row
        if not text.isascii():
            text = text.encode("utf-8", "replace").decode()
        if text in seen:
            continue
        seen.add(text)
        for index, name, column, buckets in outputs:
            value = values[index]
            if value is None:
                continue
            if buckets:
                column.extend(_histogram(name, text, value))
                samples += len(column)
            else:
                column.append(f"{name}{text} {value}\n")
        samples += len(outputs)
        if samples >= METRICS_SAMPLES_PER_SLICE:
            samples = 0
            yield NOT_YET
    for metric, column in zip(metrics, columns, strict=True):
        if column or all_heads:
            yield from _column(prefix, metric, column)


def _column(prefix: str, metric: Metric, lines: list[str]) -> Iterator[bytes]:
    """Yield a metric with its samples; its first two lines begin a piece."""
    name = prefix + metric.name
    head = f"{HEAD}{name} {metric.kind}\n# HELP {name} {metric.help}\n"
    if not lines:
        yield head.encode("utf-8", "replace")
    for start in range(0, len(lines), METRICS_LINES_PER_SLICE):
        text = "".join(lines[start : start + METRICS_LINES_PER_SLICE])
        yield (head + text).encode("utf-8", "replace")
        head = ""


def _histogram(name: str, text: str, value: object) -> list[str]:
    """Return the samples of a histogram: cumulative buckets, sum and count."""
    assert isinstance(value, Histogram), "the value of a metric of type histogram"
    before = text[:-1] + "," if text else "{"
    lines = []
    reached = 0
    for bound, count in zip(value.bounds, value.counts, strict=False):
        reached += count
        lines.append(f'{name}_bucket{before}le="{bound}"}} {reached}\n')
    reached += value.counts[-1]
    lines.append(f'{name}_bucket{before}le="+Inf"}} {reached}\n')
    lines.append(f"{name}_sum{text} {value.total}\n")
    lines.append(f"{name}_count{text} {reached}\n")
    return lines


def summed(
    rows: Iterable[Row | None], width: int, *, largest: Sequence[int] = ()
) -> Iterator[Row | None]:
    """Yield one row without labels with the sums of all rows, and None after each slice before.

    Args:
        rows: the objects.
        width: the number of values in a row.
        largest: the indexes of values of which the largest is wanted, not the sum.
    """
    sums: list[Value] = [None] * width
    samples = 0
    for row in rows:
        if row is None:
            yield None
            continue
        for index, value in enumerate(row[1]):
            if value is None:
                continue
            before = sums[index]
            if before is None:
                sums[index] = _copied(value)
            elif isinstance(before, Histogram):
                assert isinstance(value, Histogram), "as the first one"
                before.add(value)
            elif index in largest:
                sums[index] = max(before, value)  # type: ignore[type-var]
            else:
                sums[index] = before + value  # type: ignore[operator]
        samples += width
        if samples >= METRICS_SAMPLES_PER_SLICE:
            samples = 0
            yield None
    yield "", sums


def _copied(value: Value) -> Value:
    """Return a value that may be added to."""
    if not isinstance(value, Histogram):
        return value
    copy = Histogram(value.bounds)
    copy.add(value)
    return copy
