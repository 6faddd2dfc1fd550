"""Harebell and RabbitMQ say the same to sequences of operations that nobody wrote by hand."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from tests.interop.differential.operations import Maker
from tests.interop.differential.pairs import Side
from tests.interop.rabbitmq import RabbitNode
from tests.running import RunningBroker, running_broker

_GROUPS = 4
_IN_GROUP = 10
_SOAK_SEQUENCES = 2_000


@pytest.fixture(scope="module")
def harebell() -> Iterator[RunningBroker]:
    with running_broker() as broker:
        yield broker


@pytest.fixture(scope="module")
def rabbitmq() -> Iterator[RabbitNode]:
    node = RabbitNode()
    node.start()
    yield node
    node.stop()


def compare(seed: int, ours_at: int, theirs_at: int) -> None:
    """Run one sequence on both brokers, and stop at the first word that differs."""
    maker = Maker(seed)
    ours, theirs = Side(ours_at, maker.queues), Side(theirs_at, maker.queues)
    try:
        for operation in maker.operations():
            assert ours.run(operation) == theirs.run(operation), f"sequence {seed}: {operation}"
            assert ours.ended == theirs.ended
            if ours.ended:
                return
    finally:
        ours.close()
        theirs.close()


@pytest.mark.parametrize("group", range(_GROUPS))
def test_both_brokers_say_the_same_to_generated_operations(
    group: int, harebell: RunningBroker, rabbitmq: RabbitNode
) -> None:
    for seed in range(group * _IN_GROUP, (group + 1) * _IN_GROUP):
        compare(seed, harebell.port, rabbitmq.port)


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_both_brokers_say_the_same_to_many_more(
    harebell: RunningBroker, rabbitmq: RabbitNode
) -> None:
    first = int.from_bytes(os.urandom(4), "big")
    sys.stdout.write(f"first seed {first}\n")
    for seed in range(first, first + _SOAK_SEQUENCES):
        compare(seed, harebell.port, rabbitmq.port)
