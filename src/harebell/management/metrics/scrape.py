"""The documents that Prometheus scrapes, as iterators whose steps are slices of work.

    /metrics              sums over all queues, channels and connections
    /metrics/per-object   one sample per queue, channel or connection
    /metrics/detailed     chosen families, vhosts and queues

A step returns text, or nothing yet; the caller may do other things between two steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from harebell.management.metrics import families
from harebell.management.metrics.ages import Ages, Heads
from harebell.management.metrics.counted import Totals
from harebell.management.metrics.groups import connections, queues, totals
from harebell.management.metrics.section import HAREBELL, RABBITMQ, Section, Selection
from harebell.management.metrics.text import (
    NOT_YET,
    Metric,
    Row,
    Value,
    labelled,
    summed,
    written,
)

if TYPE_CHECKING:
    from harebell.management.metrics.source import Source

AGGREGATED, BY_OBJECT, DETAILED, MEMORY = (
    *("aggregated", "per-object", "detailed"),
    "memory-breakdown",
)
"""Values of the label `rabbitmq_endpoint`."""
_WIDTH = sum([len(section.metrics) for section in families.OF_QUEUES])
_AGES = len(queues.ages.metrics)
_MORE = {RABBITMQ: "rabbitmq_detailed_", HAREBELL: "harebell_detailed_"}


class Scraper:
    """Writes the documents of one broker.

    Args:
        source: the broker.
        version: the version that clients of RabbitMQ are shown.
        store: the number that is put into a label `store` of each sample, for one of several
            workers; 0 for a broker that has no other ones. All documents of workers have the same
            metrics in the same order, whether they have samples or not.
    """

    def __init__(self, source: Source, version: str, store: int = 0) -> None:
        self._source = source
        self._version = version
        self._store = store
        self._label = f'store="{store}"' if store else ""
        self._identity = True
        self._heads: Heads = {}
        self._largest: dict[str, tuple[int, ...]] = {}

    def part(self) -> Scraper:
        """Return what writes the same without the identity of the broker, for another worker."""
        part = Scraper(self._source, self._version, self._store)
        part._identity = False
        # Counters that never fall do not do so in whichever of both documents.
        part._largest = self._largest
        return part

    def _selection(
        self,
        endpoint: str,
        vhosts: Iterable[str] | None = None,
        named: Callable[[str], bool] | None = None,
    ) -> Selection:
        """Return what one scrape reads; several scrapes may be in progress."""
        source = self._source
        return Selection(
            source,
            Ages(source, self._heads),
            Totals(source, self._largest),
            endpoint,
            self._version,
            None if vhosts is None else frozenset(vhosts),
            named,
        )

    def aggregated(self) -> Iterator[bytes]:
        """Yield the document with sums."""
        chosen = self._selection(AGGREGATED)
        yield from self._identified(chosen)
        yield from _gathered(chosen)
        yield from self._queue_sums(chosen)
        for section in (connections.channels, connections.channel_state):
            sums = summed(section.rows(chosen), len(section.metrics))
            yield from self._written(RABBITMQ, section.metrics, sums)
        for metrics, row in totals.sums(chosen):
            yield from self._written(RABBITMQ, metrics, [row])
        yield from self._sections((*families.OF_THE_BROKER, *families.OF_THE_NODE), chosen)

    def per_object(self) -> Iterator[bytes]:
        """Yield the document with a sample per object."""
        chosen = self._selection(BY_OBJECT)
        yield from self._identified(chosen)
        yield from _gathered(chosen)
        yield from self._sections(families.PER_OBJECT, chosen)
        self._heads = chosen.ages.heads
        yield from self._sections((*families.OF_THE_BROKER, *families.OF_THE_NODE), chosen)

    def memory(self) -> Iterator[bytes]:
        """Yield the document of memory and disk."""
        chosen = self._selection(MEMORY)
        yield from self._identified(chosen)
        yield from self._sections(families.MEMORY_BREAKDOWN, chosen)

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
        chosen = self._selection(DETAILED, vhosts, named)
        yield from self._identified(chosen)
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
            yield from self._written(prefix, section.metrics, section.rows(chosen))
        if chosen.ages.heads:
            self._heads = chosen.ages.heads

    def _identified(self, chosen: Selection) -> Iterator[bytes]:
        """Yield what every document begins with; it has no label, as all workers have it."""
        for section in families.IDENTITY:
            rows = section.rows(chosen) if self._identity else ()
            yield from written(section.prefix, section.metrics, rows, all_heads=not self._identity)

    def _sections(self, sections: Iterable[Section], chosen: Selection) -> Iterator[bytes]:
        """Yield the text of sections."""
        for section in sections:
            yield from self._written(section.prefix, section.metrics, section.rows(chosen))

    def _written(
        self, prefix: str, metrics: Sequence[Metric], rows: Iterable[Row | None]
    ) -> Iterator[bytes]:
        """Yield the text of metrics."""
        if self._label:
            rows = labelled(rows, self._label)
        return written(prefix, metrics, rows, all_heads=bool(self._label))

    def _queue_sums(self, chosen: Selection) -> Iterator[bytes]:
        """Yield sums over all queues, and the largest ages; all in one pass."""
        for _ in chosen.ages.look():
            yield NOT_YET
        sums: Row = ("", (None,) * _WIDTH)
        for row in summed(_queue_rows(chosen), _WIDTH, largest=range(_WIDTH - _AGES, _WIDTH)):
            if row is None:
                yield NOT_YET
            else:
                sums = row
        self._heads = chosen.ages.heads
        at = 0
        for section in families.OF_QUEUES:
            values = sums[1][at : at + len(section.metrics)]
            at += len(section.metrics)
            # The sum of nothing is 0; an age of no message stays absent.
            if section is not queues.ages:
                values = tuple([0 if value is None else value for value in values])
            yield from self._written(section.prefix, section.metrics, [("", values)])


def _gathered(chosen: Selection) -> Iterator[bytes]:
    """Sum what the rest of the document needs."""
    for _ in chosen.totals.gather():
        yield NOT_YET


def _queue_rows(chosen: Selection) -> Iterator[Row]:
    """Yield a row of `families.OF_QUEUES` for each queue."""
    before: tuple[Value, ...] = (None,) * (_WIDTH - 1 - _AGES)
    yield "", (*before, chosen.source.broker.delivery_counts, *(None,) * _AGES)
    counted = [section.values for section in families.OF_QUEUES if section is not queues.ages]
    for queue in chosen.queues():
        values = [value for of in counted for value in of(queue) or ()]
        yield "", (*values, *chosen.ages.of(queue))
