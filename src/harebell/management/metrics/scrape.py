"""The documents that Prometheus scrapes, as iterators whose steps are slices of work.

    /metrics              sums over all queues, channels and connections
    /metrics/per-object   one sample per queue, channel or connection
    /metrics/detailed     chosen families, vhosts and queues

A step returns text, or nothing yet; the caller may do other things between two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from harebell.management.metrics import families
from harebell.management.metrics.ages import Ages, Heads
from harebell.management.metrics.families import HAREBELL, RABBITMQ, Section, Selection
from harebell.management.metrics.groups import connections, node, queues, totals
from harebell.management.metrics.text import NOT_YET, Metric, Row, Value, summed, written

if TYPE_CHECKING:
    from harebell.management.metrics.source import Source

AGGREGATED, BY_OBJECT, DETAILED, MEMORY = (
    *("aggregated", "per-object", "detailed"),
    "memory-breakdown",
)
"""Values of the label `rabbitmq_endpoint`."""
OF_QUEUES = (
    (RABBITMQ, queues.COARSE),
    (RABBITMQ, queues.CONSUMERS),
    (RABBITMQ, queues.PUBLISHED),
    (HAREBELL, queues.DELAYED),
    (HAREBELL, queues.COUNTS),
    (HAREBELL, queues.AGES),
)
"""Metrics of queues that `/metrics` has sums of, or the largest ages."""
_WIDTH = sum([len(metrics) for _, metrics in OF_QUEUES])
_MORE = {RABBITMQ: "rabbitmq_detailed_", HAREBELL: "harebell_detailed_"}


class Scraper:
    """Writes the documents of one broker.

    Args:
        source: the broker.
        version: the version that clients of RabbitMQ are shown.
    """

    def __init__(self, source: Source, version: str) -> None:
        self._source = source
        self._version = version
        self._heads: Heads = {}
        self._largest: dict[str, tuple[int, ...]] = {}

    def _selection(
        self,
        vhosts: Iterable[str] | None = None,
        named: Callable[[str], bool] | None = None,
    ) -> Selection:
        """Return what one scrape reads; several scrapes may be in progress."""
        only = None if vhosts is None else frozenset(vhosts)
        ages = Ages(self._source, self._heads)
        return Selection(
            self._source, ages, totals.Totals(self._source, self._largest), only, named
        )

    def aggregated(self) -> Iterator[bytes]:
        """Yield the document with sums."""
        chosen = self._selection()
        yield from self._begin(AGGREGATED, chosen)
        yield from self._queue_sums(chosen)
        state = connections.connection_rows(self._source, connections.channel_count)
        yield from written(RABBITMQ, connections.CHANNELS, summed(state, 1))
        rows = connections.channel_rows(self._source, chosen.vhosts, connections.channel_state)
        width = len(connections.CHANNEL_STATE)
        yield from written(RABBITMQ, connections.CHANNEL_STATE, summed(rows, width))
        for metrics, row in (
            (connections.CHANNEL_PUBLISHED, chosen.totals.channel_published_row()),
            (connections.CHANNEL_DELIVERED, chosen.totals.channel_delivered_row()),
            ((*connections.TRAFFIC, *connections.PACKETS), chosen.totals.traffic_row()),
        ):
            yield from written(RABBITMQ, metrics, [row])
        yield from self._whole(chosen)

    def per_object(self) -> Iterator[bytes]:
        """Yield the document with a sample per object."""
        chosen = self._selection()
        yield from self._begin(BY_OBJECT, chosen)
        for section in families.PER_OBJECT:
            yield from written(section.prefix, section.metrics, section.rows(chosen))
        self._heads = chosen.ages.heads
        yield from self._whole(chosen)

    def memory(self) -> Iterator[bytes]:
        """Yield the document of memory and disk."""
        chosen = self._selection()
        yield from self._identity(MEMORY)
        for section in families.MEMORY_BREAKDOWN:
            yield from written(section.prefix, section.metrics, section.rows(chosen))

    def detailed(
        self,
        names: Iterable[str],
        vhosts: Iterable[str] | None = None,
        named: Callable[[str], bool] | None = None,
    ) -> Iterator[bytes]:
        """Yield the document of some families.

        Args:
            names: the families; unknown ones are named in a comment.
            vhosts: the vhosts whose objects are written; None for all.
            named: true for the queues that are written, by name; None for all.
        """
        yield from self._identity(DETAILED)
        chosen = self._selection(vhosts, named)
        sections: dict[Section, None] = {}
        for name in dict.fromkeys(names):
            family = families.FAMILIES.get(name)
            if family is not None:
                sections.update(dict.fromkeys(family))
            elif name not in families.EMPTY:
                # Escaped: a line break in the name would end the comment, and the rest be read as a
                # sample.
                yield f"# unknown family {name!a}\n".encode()
        for section in sections:
            prefix = _MORE.get(section.prefix, section.prefix)
            yield from written(prefix, section.metrics, section.rows(chosen))
        if chosen.ages.heads:
            self._heads = chosen.ages.heads

    # --- parts ----------------------------------------------------------------------------------

    def _identity(self, endpoint: str) -> Iterator[bytes]:
        """Yield what identifies the broker."""
        yield from written(RABBITMQ, node.IDENTITY, node.identity_rows(self._source, endpoint))
        yield from written(RABBITMQ, node.BUILD, node.build_rows(self._version))

    def _begin(self, endpoint: str, chosen: Selection) -> Iterator[bytes]:
        """Yield what identifies the broker, and sum what the rest of the document needs."""
        yield from self._identity(endpoint)
        for _ in chosen.totals.gather():
            yield NOT_YET

    def _whole(self, chosen: Selection) -> Iterator[bytes]:
        """Yield the metrics of the whole broker."""
        for section in (*families.OF_THE_BROKER, *families.OF_THE_NODE):
            yield from written(section.prefix, section.metrics, section.rows(chosen))

    def _queue_sums(self, chosen: Selection) -> Iterator[bytes]:
        """Yield sums over all queues, and the largest ages; all in one pass."""
        for _ in chosen.ages.look():
            yield NOT_YET
        oldest = range(_WIDTH - len(queues.AGES), _WIDTH)
        sums: Row = ("", (None,) * _WIDTH)
        for row in summed(_queue_rows(chosen), _WIDTH, largest=oldest):
            if row is None:
                yield NOT_YET
            else:
                sums = row
        self._heads = chosen.ages.heads
        at = 0
        for prefix, metrics in OF_QUEUES:
            values = sums[1][at : at + len(metrics)]
            at += len(metrics)
            yield from written(prefix, metrics, [("", _zero_if_none(metrics, values))])


def _queue_rows(chosen: Selection) -> Iterator[Row]:
    """Yield a row of the metrics `OF_QUEUES` for each queue."""
    before = (None,) * (_WIDTH - len(queues.COUNTS) - len(queues.AGES))
    yield "", (*before, chosen.source.broker.delivery_counts, *(None,) * len(queues.AGES))
    for queue in chosen.queues():
        values = (
            *queues.coarse(queue),
            *queues.consumers(queue),
            *queues.published(queue),
            *queues.delayed(queue),
            *queues.counts(queue),
            *chosen.ages.of(queue),
        )
        yield "", values


def _zero_if_none(metrics: tuple[Metric, ...], values: Iterable[Value]) -> tuple[Value, ...]:
    """Return 0 for sums of nothing; an age of no message stays absent."""
    if metrics is queues.AGES:
        return tuple(values)
    return tuple([0 if value is None else value for value in values])
