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
_TRIES = 3
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


def play(maker: Maker, ours_at: int, theirs_at: int) -> tuple[list[list[str]], str]:
    """Run one sequence on both brokers, and stop at the first word that differs.

    Returns:
        What Harebell said to each operation, and what differs.
    """
    ours, theirs = Side(ours_at, maker.queues), Side(theirs_at, maker.queues)
    said: list[list[str]] = []
    try:
        for operation in maker.operations():
            mine, others = ours.run(operation), theirs.run(operation)
            said.append([note.replace(maker.mark, "") for note in mine])
            if (mine, ours.ended) != (others, theirs.ended):
                return said, f"{operation}\n  Harebell: {mine}\n  RabbitMQ: {others}"
            if ours.ended:
                break
    finally:
        ours.close()
        theirs.close()
    return said, ""


def compare(seed: int, ours_at: int, theirs_at: int) -> None:
    """Run one sequence; what differs has to do so each time.

    RabbitMQ is many processes, and on a busy machine one of them may be late for once. Harebell is
    one, and has to say the same every time.
    """
    before: list[list[str]] = []
    for again in range(_TRIES):
        said, difference = play(Maker(seed, again), ours_at, theirs_at)
        for first, second in zip(before, said, strict=False):
            assert first == second, f"sequence {seed}: Harebell says something else the next time"
        if not difference:
            return
        sys.stdout.write(f"sequence {seed}, try {again}: {difference}\n")
        before = said
    raise AssertionError(f"sequence {seed}: {difference}")


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
