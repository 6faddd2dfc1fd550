"""Harebell and RabbitMQ say the same to sequences of operations that nobody wrote by hand."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from harebell.wire.v09 import methods as m
from tests.interop.differential.operations import Maker, Operation
from tests.interop.differential.pairs import Side
from tests.interop.differential.replicated import QuorumMaker
from tests.interop.differential.reviewed import (
    came_back_in_another_order,
    sent_after_the_end,
    sent_in_another_turn,
)
from tests.interop.differential.richer import (
    LIMITED_PASSWORD,
    LIMITED_PERMISSIONS,
    LIMITED_USER,
    POLICIES,
    RichMaker,
    maker_for,
)
from tests.interop.rabbitmq import RabbitNode
from tests.patience import SECONDS
from tests.running import RunningBroker, command, environment, running_broker

_GROUPS = 4
_IN_GROUP = 10
_TRIES = 3
_ONCE_DIFFERENT = (7_087, 707_586_659, 918_273_197, 970_670_803)
"""Sequences that showed differences which are reviewed since."""
_SOAK_SEQUENCES = 2_000
_PATIENCE_SECONDS = 30.0
"""How long the brokers may take to say the same."""
_MEANT_SECONDS = 10.0
"""How long a difference has to last that is meant."""


@pytest.fixture(scope="module")
def harebell() -> Iterator[RunningBroker]:
    with running_broker() as broker:

        def manage(*words: str) -> None:
            where = ["--data-dir", str(broker.data_dir)]
            subprocess.run(
                [command(), *words, *where], timeout=SECONDS, check=True, env=environment()
            )

        manage("users", "add", LIMITED_USER, LIMITED_PASSWORD)
        manage("permissions", "set", LIMITED_USER, *LIMITED_PERMISSIONS)
        for name, pattern, definition, kind in POLICIES:
            manage("policies", "set", name, pattern, definition, "--apply-to", kind)
        yield broker


@pytest.fixture(scope="module")
def rabbitmq() -> Iterator[RabbitNode]:
    node = RabbitNode()
    node.start()
    try:
        node.ctl("add_user", LIMITED_USER, LIMITED_PASSWORD)
        node.ctl("set_permissions", LIMITED_USER, *LIMITED_PERMISSIONS)
        for name, pattern, definition, kind in POLICIES:
            node.ctl("set_policy", name, pattern, definition, "--apply-to", kind)
        yield node
    finally:
        node.stop()


def made(seed: int, again: int) -> Maker:
    """The sequence of a seed; the kinds take turns."""
    return QuorumMaker(seed, again) if seed % 4 == 3 else maker_for(seed, again)


def play(maker: Maker, ours_at: int, theirs_at: int) -> tuple[list[list[str]], str]:
    """Run one sequence on both brokers, and stop at the first word that differs.

    Returns:
        What Harebell said to each operation, and what differs.
    """
    second = (LIMITED_USER, LIMITED_PASSWORD) if isinstance(maker, RichMaker) else None
    counted = not isinstance(maker, QuorumMaker)
    ours = Side(ours_at, maker.queues, second, counted=counted)
    theirs = Side(theirs_at, maker.queues, second, counted=counted)
    said: list[list[str]] = []
    try:
        for operation in maker.operations():
            mine, others = ours.run(operation), theirs.run(operation)
            begun = time.monotonic()
            while mine != others and ours.ended == theirs.ended:
                meant = _is_meant(mine, others, counted)
                if time.monotonic() - begun > (_MEANT_SECONDS if meant else _PATIENCE_SECONDS):
                    break
                late = not counted and _found_nothing(operation, others)
                mine, others = ours.more(), theirs.run(operation) if late else theirs.more()
            said.append([note.replace(maker.mark, "") for note in mine])
            if (mine, ours.ended) != (others, theirs.ended):
                if ours.ended == theirs.ended and _is_meant(mine, others, counted):
                    # What follows would be about different deliveries, or other messages.
                    return said, ""
                return said, f"{operation}\n  Harebell: {mine}\n  RabbitMQ: {others}"
            if ours.ended:
                break
    finally:
        ours.close()
        theirs.close()
    return said, ""


def _found_nothing(operation: Operation, said: list[str]) -> bool:
    """Whether a queue was asked for a message before what quorum queues bury was there."""
    others = [note for note in said if not note.endswith(" BasicGetEmpty()")]
    return isinstance(operation.method, m.BasicGet) and bool(said) and not others


def _is_meant(ours: list[str], theirs: list[str], counted: bool) -> bool:
    """Whether a difference is reviewed; queues without exact counts are quorum queues."""
    if sent_after_the_end(ours, theirs):
        return True
    return not counted and (
        sent_in_another_turn(ours, theirs) or came_back_in_another_order(ours, theirs)
    )


def compare(seed: int, ours_at: int, theirs_at: int) -> None:
    """Run one sequence; what differs has to do so each time.

    RabbitMQ is many processes, and on a busy machine one of them may be late for once. Harebell is
    one, and has to say the same every time; only confirms of what is persistent come when they can.
    """
    before: list[list[str]] = []
    for again in range(_TRIES):
        maker = made(seed, again)
        said, difference = play(maker, ours_at, theirs_at)
        for first, second in zip(before, said, strict=False):
            assert first == second, f"sequence {seed}: Harebell says something else the next time"
        if not difference:
            return
        sys.stdout.write(f"sequence {seed}, try {again}: {difference}\n")
        before = said if type(maker) is Maker else []
    raise AssertionError(f"sequence {seed}: {difference}")


@pytest.mark.parametrize("group", range(_GROUPS))
def test_both_brokers_say_the_same_to_generated_operations(
    group: int, harebell: RunningBroker, rabbitmq: RabbitNode
) -> None:
    for seed in range(group * _IN_GROUP, (group + 1) * _IN_GROUP):
        compare(seed, harebell.port, rabbitmq.port)


@pytest.mark.parametrize("seed", _ONCE_DIFFERENT)
def test_sequences_that_once_differed_differ_only_as_intended(
    seed: int, harebell: RunningBroker, rabbitmq: RabbitNode
) -> None:
    compare(seed, harebell.port, rabbitmq.port)


_ONE_BY_ONE = [
    "0.2 BasicDeliver(consumer_tag='x', delivery_tag=5, redelivered=True) b'first'",
    "0.2 BasicDeliver(consumer_tag='t', delivery_tag=6, redelivered=True) b'second'",
    "0.2 BasicDeliver(consumer_tag='x', delivery_tag=7, redelivered=True) b'third'",
]
_BY_CONSUMER = [
    "0.2 BasicDeliver(consumer_tag='t', delivery_tag=5, redelivered=True) b'second'",
    "0.2 BasicDeliver(consumer_tag='x', delivery_tag=6, redelivered=True) b'first'",
    "0.2 BasicDeliver(consumer_tag='x', delivery_tag=7, redelivered=True) b'third'",
]


@pytest.mark.parametrize(
    ("before", "after"),
    [("first", "third"), ("tag=7", "tag=8"), ("'t'", "'s'"), ("0.2", "1.2"), ("second", "fifth")],
)
def test_nothing_else_may_differ_then(before: str, after: str) -> None:
    changed = [_BY_CONSUMER[0].replace(before, after), *_BY_CONSUMER[1:]]
    changed = changed if changed != _BY_CONSUMER else [
        *_BY_CONSUMER[:1], *(note.replace(before, after) for note in _BY_CONSUMER[1:])
    ]  # fmt: skip
    assert changed != _BY_CONSUMER
    assert not sent_in_another_turn(_ONE_BY_ONE, changed)


_CLOSE = "0.1 ChannelClose(reply_code=406)"


def test_no_other_delivery_is_left_out() -> None:
    late = _BY_CONSUMER[0].replace("0.2", "0.1")
    assert not sent_after_the_end([_CLOSE], [late, _CLOSE])
    assert not sent_after_the_end([_CLOSE], [_CLOSE, _BY_CONSUMER[0]])
    assert not sent_after_the_end([_CLOSE, late], [_CLOSE])
    assert not sent_after_the_end([_CLOSE], [_CLOSE])


@pytest.mark.parametrize(
    ("before", "after"), [("third", "first"), ("True", "False"), ("'x'", "'t'"), ("tag=5", "tag=9")]
)
def test_messages_requeued_in_another_order_are_the_same_messages(before: str, after: str) -> None:
    back = [_ONE_BY_ONE[0], _ONE_BY_ONE[2]]
    changed = [note.replace(before, after) for note in back]
    assert not came_back_in_another_order([*back, _CLOSE], [*changed, _CLOSE])


@pytest.mark.soak
@pytest.mark.timeout(3_600)
def test_both_brokers_say_the_same_to_many_more(
    harebell: RunningBroker, rabbitmq: RabbitNode
) -> None:
    first = int.from_bytes(os.urandom(4), "big")
    sys.stdout.write(f"first seed {first}\n")
    for seed in range(first, first + _SOAK_SEQUENCES):
        compare(seed, harebell.port, rabbitmq.port)
