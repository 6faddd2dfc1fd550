"""Queues that match a pattern come and go, without a JVM: all is read, or what is lost is told."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harebell.spark.reading.data_loss_policy import DataLoss
from harebell.spark.reading.offsets import OffsetError
from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.source import QueueSource
from tests.spark.asking import BODIES, bodies, gathered, publish, waiting
from tests.spark.conftest import PATIENT

Readers = Callable[..., QueueStreamReader]
STREAM = {"x-queue-type": "stream"}
EACH = pytest.mark.parametrize("kind", [STREAM, {}], ids=["stream", "classic"])
GONE = "which the query was reading, was deleted"


class Family:
    """Queues whose names begin alike.

    Args:
        channel: that declares them.
        name: how they begin.
    """

    def __init__(self, channel: Any, name: str) -> None:
        self.channel = channel
        self.name = name
        self.names: list[str] = []

    def declare(self, last: str, kind: dict[str, str], first: int, end: int) -> str:
        """Another one, with numbers in it."""
        name = f"{self.name}.{last}"
        self.channel.queue_declare(name, durable=True, arguments=kind)
        self.names.append(name)
        publish(self.channel, name, first, end)
        return name


@pytest.fixture
def family(channel: Any, queue: str) -> Iterator[Family]:
    made = Family(channel, queue)
    yield made
    for name in made.names:
        channel.queue_delete(name)


@pytest.fixture
def reader(broker_url: str, queue: str, tmp_path: Path) -> Iterator[Readers]:
    """Makes readers of the family, which are stopped afterwards."""
    made: list[QueueStreamReader] = []

    def make(**options: str) -> QueueStreamReader:
        given = PATIENT | {"url": broker_url, "queuePattern": rf"{queue}\..*"} | options
        given["spoolDir"] = str(tmp_path / "spool")
        made.append(QueueSource(given).streamReader(BODIES))
        return made[-1]

    yield make
    for one in made:
        one.stop()


def run(one: QueueStreamReader, start: dict[str, Any] | None) -> tuple[list[int], dict[str, Any]]:
    """What an AvailableNow query reads from its checkpoint on, and the checkpoint then."""
    # Spark says this first, also where there is a checkpoint.
    one.prepareForTriggerAvailableNow()
    point = one.initialOffset() if start is None else start
    found: list[int] = []
    while (end := one.latestOffset(point, one.getDefaultReadLimit())) != point:
        found += bodies(one, point, end)
        point = end
    return sorted(found), json.loads(json.dumps(point))


@EACH
def test_a_queue_that_was_declared_between_two_runs_is_read_from_its_first_message(
    reader: Readers, family: Family, kind: dict[str, str]
) -> None:
    family.declare("old", kind, 0, 3)
    begun = reader()
    start = begun.initialOffset()
    family.declare("new", kind, 10, 13)
    publish(family.channel, family.names[0], 3, 5)
    at_first = [3, 4] if kind else [0, 1, 2, 3, 4]
    found, point = run(reader(), start)
    assert found == sorted([*at_first, 10, 11, 12])
    publish(family.channel, family.names[1], 13, 15)
    assert run(reader(), point)[0] == [13, 14]


def test_many_queues_are_all_read_and_settled_in_small_micro_batches(
    reader: Readers, family: Family
) -> None:
    for number in range(8):
        family.declare(str(number), {}, 10 * number, 10 * number + number // 5 * 3)
    found, _ = run(reader(maxOffsetsPerTrigger="2"), None)
    assert found == [50, 51, 52, 60, 61, 62, 70, 71, 72]
    assert not any(waiting(family.channel, name) for name in family.names)


def test_a_stream_that_joins_a_running_query_is_read_from_its_first_message(
    reader: Readers, family: Family
) -> None:
    family.declare("old", STREAM, 0, 3)
    one = reader()
    start = one.initialOffset()
    new = family.declare("new", STREAM, 10, 13)
    end = gathered(one, start)
    assert bodies(one, start, end) == [10, 11, 12]
    publish(family.channel, new, 13, 15)
    assert bodies(one, end, gathered(one, end)) == [13, 14]


@EACH
def test_a_query_ends_with_a_queue_that_it_was_reading(
    reader: Readers, family: Family, kind: dict[str, str]
) -> None:
    family.declare("stays", kind, 0, 3)
    goes = family.declare("goes", kind, 10, 13)
    one = reader(startingOffsets="earliest")
    found, point = run(one, None)
    assert found == [0, 1, 2, 10, 11, 12]
    one.stop()
    family.channel.queue_delete(goes)
    publish(family.channel, family.names[0], 3, 5)
    with pytest.raises(DataLoss, match=f"{goes}', {GONE}.*failOnDataLoss=false reads on"):
        run(reader(), point)


@EACH
def test_a_query_that_is_told_so_goes_on_without_a_queue_that_is_gone(
    reader: Readers, family: Family, kind: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    stays = family.declare("stays", kind, 0, 3)
    goes = family.declare("goes", kind, 10, 13)
    one = reader(startingOffsets="earliest", failOnDataLoss="false")
    start = one.initialOffset()
    end = gathered(one, start)
    assert sorted(bodies(one, start, end)) == [0, 1, 2, 10, 11, 12]
    family.channel.queue_delete(goes)
    publish(family.channel, stays, 3, 5)
    with caplog.at_level(logging.WARNING, "harebell.spark"):
        later = gathered(one, end)
    assert GONE in caplog.text
    assert bodies(one, end, later) == [3, 4]
    assert list(later) == [stays]
    one.stop()
    # Started again in the middle of a micro-batch that knew the queue, too.
    again = reader(failOnDataLoss="false")
    assert bodies(again, end, later) == [3, 4]
    publish(family.channel, stays, 5, 6)
    assert bodies(again, later, gathered(again, later)) == [5]


def test_a_query_whose_queues_are_all_gone_waits_for_others(
    reader: Readers, family: Family
) -> None:
    goes = family.declare("goes", {}, 0, 1)
    one = reader(failOnDataLoss="false")
    start = one.initialOffset()
    family.channel.queue_delete(goes)
    nothing = one.latestOffset(start, one.getDefaultReadLimit())
    assert nothing == {}
    assert one.partitions(start, nothing) == []
    assert one.latestOffset(nothing, one.getDefaultReadLimit()) == {}
    new = family.declare("new", {}, 5, 6)
    assert bodies(one, nothing, gathered(one, nothing)) == [5]
    assert waiting(family.channel, new) == 0


@pytest.mark.parametrize("delivery", ["at-least-once", "at-most-once"])
def test_queues_that_match_are_read_over_plain_amqp_too_and_come_and_go(
    reader: Readers, family: Family, delivery: str
) -> None:
    options = {"delivery": delivery, "failOnDataLoss": "false"}
    family.declare("first", {}, 0, 3)
    found, point = run(reader(**options), None)
    assert found == [0, 1, 2]
    assert list(point) == [family.names[0]]
    family.declare("second", {}, 10, 13)
    publish(family.channel, family.names[0], 3, 5)
    found, point = run(reader(**options), point)
    assert found == [3, 4, 10, 11, 12]
    one = reader(**options)
    family.channel.queue_delete(family.names[0])
    publish(family.channel, family.names[1], 13, 14)
    seen: list[int] = []
    for _ in range(500):
        end = one.latestOffset(point, one.getDefaultReadLimit())
        seen += bodies(one, point, end)
        point = end
        if seen and family.names[0] not in point:
            break
    assert seen == [13]
    assert list(point) == [family.names[1]]


@EACH
def test_a_narrower_pattern_leaves_the_other_queues_after_what_was_planned(
    reader: Readers, family: Family, kind: dict[str, str], queue: str
) -> None:
    stays = family.declare("eu", kind, 0, 3)
    goes = family.declare("us", kind, 10, 13)
    first = reader(startingOffsets="earliest")
    start = first.initialOffset()
    end = gathered(first, start)
    first.stop()
    for number, name in enumerate((stays, goes)):
        publish(family.channel, name, 20 + 10 * number, 23 + 10 * number)
    narrow = reader(queuePattern=rf"{queue}\.e.*", startingOffsets="earliest")
    assert sorted(bodies(narrow, start, end)) == [0, 1, 2, 10, 11, 12]
    found, last = run(narrow, end)
    assert found == [20, 21, 22]
    assert list(last) == [stays]
    assert waiting(family.channel, goes) == (3 if not kind else 6)


def test_a_checkpoint_over_other_queues_is_refused_where_a_pattern_names_none_of_them(
    reader: Readers, family: Family, queue: str
) -> None:
    family.declare("old", {}, 0, 3)
    start = reader().initialOffset()
    other = reader(queuePattern=rf"{queue}-.*")
    with pytest.raises(OffsetError, match=r"belongs to a query over .*\.old, and .* names none"):
        other.latestOffset(start, other.getDefaultReadLimit())
