"""Which class reads a queue: by delivery and type for a new query, by offset for a checkpoint."""

from __future__ import annotations

from itertools import product

import pytest

from harebell.spark.options.source_options import Options, parse
from harebell.spark.reading.errors import SourceError
from harebell.spark.reading.leased.leased_reader import LeasedReader
from harebell.spark.reading.offsets import (
    ClaimOffset,
    LogOffset,
    OffsetError,
    QueueOffset,
    SpoolOffset,
)
from harebell.spark.reading.positions.position_reader import PositionReader
from harebell.spark.reading.spooled.spooled_reader import SpooledReader
from harebell.spark.reading.strategies import (
    Strategy,
    check_plain,
    continued_strategy,
    new_strategy,
)

_DELIVERIES = ("", "exactly-once", "at-least-once", "at-most-once", "peek")
_OFFSETS = (SpoolOffset(1, "ab"), LogOffset("log", 1), ClaimOffset("log", "group", 1))
_READERS = (SpooledReader, PositionReader, LeasedReader)
_REFUSED = {
    ("exactly-once", SpoolOffset),
    ("peek", SpoolOffset),
    ("at-least-once", ClaimOffset),
    ("at-most-once", ClaimOffset),
    ("peek", ClaimOffset),
}


def options(delivery: str, **others: str) -> Options:
    return parse({"queue": "q"} | others | ({"delivery": delivery} if delivery else {}), {})


@pytest.mark.parametrize("delivery", _DELIVERIES)
def test_a_stream_is_read_by_position_whatever_the_delivery(delivery: str) -> None:
    assert new_strategy(options(delivery), "stream") is PositionReader


@pytest.mark.parametrize(
    ("delivery", "strategy"),
    [
        ("", LeasedReader),
        ("exactly-once", LeasedReader),
        ("at-least-once", SpooledReader),
        ("at-most-once", SpooledReader),
        ("peek", PositionReader),
    ],
)
@pytest.mark.parametrize("kind", ["classic", "quorum", "priority"])
def test_another_queue_is_read_as_its_delivery_requires(
    delivery: str, strategy: Strategy, kind: str
) -> None:
    assert new_strategy(options(delivery), kind) is strategy


@pytest.mark.parametrize(("delivery", "offset"), list(product(_DELIVERIES, _OFFSETS)))
def test_a_checkpoint_is_read_by_the_class_that_wrote_it(
    delivery: str, offset: QueueOffset
) -> None:
    if (delivery, type(offset)) in _REFUSED:
        with pytest.raises(OffsetError, match=f"delivery is {delivery}, but the checkpoint"):
            continued_strategy(options(delivery), offset)
    else:
        strategy = continued_strategy(options(delivery), offset)
        assert strategy is dict(zip(map(type, _OFFSETS), _READERS, strict=True))[type(offset)]


@pytest.mark.parametrize("strategy", _READERS)
def test_a_reader_says_the_class_of_its_offsets(strategy: Strategy) -> None:
    assert strategy.offset_class is type(_OFFSETS[_READERS.index(strategy)])


@pytest.mark.parametrize("delivery", ["exactly-once", "peek"])
def test_another_broker_has_no_leases_and_no_bulk_reads(delivery: str) -> None:
    with pytest.raises(SourceError, match=f"\\(RabbitMQ\\) cannot do delivery={delivery}"):
        check_plain(options(delivery), "RabbitMQ")


@pytest.mark.parametrize("delivery", ["", "at-least-once", "at-most-once"])
def test_another_broker_is_read_over_plain_amqp(delivery: str) -> None:
    check_plain(options(delivery), "RabbitMQ")
