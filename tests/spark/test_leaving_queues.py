"""A query whose option `queues` names fewer queues than its checkpoint, without a JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harebell.spark.reading.offsets import OffsetError
from harebell.spark.reading.stream_source import QueueStreamReader
from harebell.spark.source import QueueSource
from tests.patience import eventually
from tests.spark.asking import BODIES, bodies, gathered, publish, waiting
from tests.spark.conftest import PATIENT

Readers = Callable[..., QueueStreamReader]


@pytest.fixture
def reader(broker_url: str) -> Iterator[Readers]:
    """Makes readers, which are stopped afterwards."""
    made: list[QueueStreamReader] = []

    def make(*queues: str, **options: str) -> QueueStreamReader:
        given = PATIENT | {"url": broker_url, "queues": json.dumps(queues)} | options
        made.append(QueueSource(given).streamReader(BODIES))
        return made[-1]

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def pair(channel: Any, queue: str) -> tuple[str, str]:
    """Two queues with messages."""
    names = (f"{queue}.stays", f"{queue}.goes")
    for number, name in enumerate(names):
        channel.queue_declare(name, durable=True)
        publish(channel, name, 100 * number, 100 * number + 10)
    return names


def begun(one: QueueStreamReader) -> tuple[dict[str, Any], dict[str, Any]]:
    """The first micro-batch, of all messages."""
    one.prepareForTriggerAvailableNow()
    start = one.initialOffset()
    return start, gathered(one, start)


def test_messages_planned_of_a_queue_are_read_and_settled_before_it_is_left(
    reader: Readers, channel: Any, pair: tuple[str, str]
) -> None:
    stays, goes = pair
    first = reader(*pair)
    start, end = begun(first)
    first.stop()
    publish(channel, goes, 200, 205)
    publish(channel, stays, 10, 15)
    # Spark had planned the micro-batch and not committed it when the query was stopped.
    second = reader(stays)
    assert sorted(bodies(second, start, end)) == [*range(10), *range(100, 110)]
    after = second.latestOffset(end, second.getDefaultReadLimit())
    assert list(after) == [stays]
    while not (found := bodies(second, end, after)):
        after = gathered(second, after)
    assert found == list(range(10, 15))
    # What was committed is gone from the queue, and nothing else.
    assert waiting(channel, goes) == 5


def test_a_queue_may_be_left_again_where_the_first_attempt_was_not_written_down(
    reader: Readers, channel: Any, pair: tuple[str, str]
) -> None:
    stays, goes = pair
    first = reader(*pair)
    _, end = begun(first)
    first.stop()
    for _ in range(2):
        again = reader(stays)
        assert list(again.latestOffset(end, again.getDefaultReadLimit())) == [stays]
        again.stop()
    assert waiting(channel, goes) == 0


@pytest.mark.parametrize("deleted", [True, False])
def test_a_queue_that_is_left_may_be_deleted(
    reader: Readers, channel: Any, pair: tuple[str, str], deleted: bool
) -> None:
    stays, goes = pair
    first = reader(*pair)
    _, end = begun(first)
    first.stop()
    if deleted:
        channel.queue_delete(goes)
    second = reader(stays)
    assert list(second.latestOffset(end, second.getDefaultReadLimit())) == [stays]
    publish(channel, stays, 50, 51)
    assert eventually(lambda: waiting(channel, stays) == 1)


def test_a_queue_that_the_checkpoint_does_not_have_is_refused(
    reader: Readers, pair: tuple[str, str]
) -> None:
    first = reader(pair[0])
    _, end = begun(first)
    first.stop()
    second = reader(*pair)
    with pytest.raises(OffsetError, match="use another checkpoint"):
        second.latestOffset(end, second.getDefaultReadLimit())
