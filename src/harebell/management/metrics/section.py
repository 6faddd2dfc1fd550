"""What a group of metrics is made of: sections, each with a table of metrics and their values.

A section is a function under a table, which has a line for each value that the function returns:

    @section('''
        by vhost exchange
        counter rabbitmq_exchange_messages_published_total Messages published to it.
    ''')
    def published(chosen: Selection) -> Iterator[Row]: ...

The line `by` has the names of the labels. The others have the kind, the name and the help.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from msgspec import Struct

from harebell.management.metrics.text import Metric, Row, Value

if TYPE_CHECKING:
    from harebell.base.counters import Counters
    from harebell.management.metrics.ages import Ages
    from harebell.management.metrics.counted import Totals
    from harebell.management.metrics.source import Source
    from harebell.model.queue.contract import Queue

_T = TypeVar("_T")
Values = tuple[Value, ...]
"""Values in the order of the metrics."""
RABBITMQ = "rabbitmq_"
CLUSTER = "rabbitmq_cluster_"
HAREBELL = "harebell_"
published_counts: Callable[[Counters], tuple[int, ...]] = attrgetter(
    *("publish", "confirm", "return_unroutable", "drop_unroutable")
)
"""Returns what a channel has published."""
delivered_counts: Callable[[Counters], tuple[int, ...]] = attrgetter(
    *("get", "get_no_ack", "deliver", "deliver_no_ack", "redeliver", "ack", "get_empty")
)
"""Returns what was taken from queues, by how."""


class Selection(Struct, frozen=True):
    """What one scrape reads.

    Args:
        source: the broker.
        ages: finds the ages of messages.
        totals: sums of the whole broker.
        endpoint: the value of the label `rabbitmq_endpoint`.
        version: the version that clients of RabbitMQ are shown.
        vhosts: the vhosts that are read; None for all.
        named: true for the queues that are read, by name; None for all.
    """

    source: Source
    ages: Ages
    totals: Totals
    endpoint: str
    version: str
    vhosts: frozenset[str] | None = None
    named: Callable[[str], bool] | None = None

    def queues(self) -> Iterator[Queue]:
        """Yield the selected queues."""
        for queue in self.source.queues(self.vhosts):
            if self.named is None or self.named(queue.name):
                yield queue


class Section(NamedTuple):
    """Metrics that are written together.

    Args:
        prefix: RABBITMQ, CLUSTER or HAREBELL.
        metrics: the names, types and texts of its families.
        labels: the names of the labels of its objects.
        rows: returns the objects with their values.
        values: returns the values of one object; for sections without objects those of the broker.
    """

    prefix: str
    metrics: tuple[Metric, ...]
    labels: tuple[str, ...]
    rows: Callable[[Selection], Iterator[Row | None]]
    values: Callable[[Any], Values | None]


def section(table: str) -> Callable[[Callable[[Selection], Iterator[Row | None]]], Section]:
    """Declare the metrics of a function that yields rows."""
    head = head_of(table)
    return lambda rows: Section(*head, rows, lambda _: None)


def figures(table: str) -> Callable[[Callable[[Selection], Values | None]], Section]:
    """Declare the metrics of a function that returns the only row; None for no row."""

    def declare(values: Callable[[Selection], Values | None]) -> Section:
        def rows(chosen: Selection) -> Iterator[Row]:
            row = values(chosen)
            if row is not None:
                yield "", row

        return Section(*head_of(table), rows, values)

    return declare


def of_each(
    objects: Callable[[Selection], Iterator[tuple[str, _T]]],
) -> Callable[[str], Callable[[Callable[[_T], Values]], Section]]:
    """Return what declares the metrics of a function that returns the values of one object.

    Args:
        objects: yields the selected objects, each with its labels.
    """

    def declare(table: str, values: Callable[[_T], Values]) -> Section:
        def rows(chosen: Selection) -> Iterator[Row]:
            for labels, each in objects(chosen):
                yield labels, values(each)

        return Section(*head_of(table), rows, values)

    return lambda table: lambda values: declare(table, values)


def head_of(table: str) -> tuple[str, tuple[Metric, ...], tuple[str, ...]]:
    """Read a table: return the prefix of its metrics, the metrics, and the names of labels."""
    labels: tuple[str, ...] = ()
    prefix, metrics = "", []
    for line in table.strip().splitlines():
        kind, name, *text = line.split()
        if kind == "by":
            labels = (name, *text)
        else:
            prefix = next(each for each in (CLUSTER, RABBITMQ, HAREBELL) if name.startswith(each))
            metrics.append(Metric(name.removeprefix(prefix), kind, " ".join(text)))
    return prefix, tuple(metrics), labels
