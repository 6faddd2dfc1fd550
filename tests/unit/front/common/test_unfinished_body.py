"""The memory of bodies that will not be finished is freed in slices."""

from __future__ import annotations

import pytest

from harebell.base.work import Step, Work
from harebell.front.common.unfinished_body import free
from harebell.kernels.bodies import GatheredBody
from tests.unit.front.amqp_0_9_1.test_content import METHOD, header
from tests.unit.front.amqp_0_9_1.world import World, frame

MIB = 1 << 20


def body_of(pieces: int) -> GatheredBody:
    """A body of so many MiB."""
    body = GatheredBody()
    for _ in range(pieces):
        body.add(bytes(MIB))
    return body


def test_a_large_body_is_freed_slice_by_slice() -> None:
    work = Work()
    steps: list[Step] = []
    work.later = steps.append
    body = body_of(8)
    free(body, work)
    assert body.size == 8 * MIB
    (step,) = steps
    sizes = []
    while True:
        work.begin(100)
        finished = step()
        sizes.append(body.size // MIB)
        if finished:
            break
    assert sizes == [6, 4, 2, 0]


@pytest.mark.parametrize("pieces", [0, 1])
def test_a_small_body_needs_no_later_turn(pieces: int) -> None:
    work = Work()
    work.later = pytest.fail
    free(body_of(pieces), work)


def test_connections_that_end_leave_their_bodies_to_later_turns() -> None:
    world = World()
    peers = [world.peer() for _ in range(3)]
    for peer in peers:
        peer.give(METHOD)
        peer.give(header(26 * MIB))
        for _ in range(40):
            peer.give(frame(3, 1, bytes(131_064)))
    world.limit(300)
    assert world.broker.gauge.unread == 3 * 40 * 131_064
    for peer in peers:
        peer.connection.eof()
    assert world.broker.gauge.unread == 0
    turns = 0
    while world.registry.turns.busy:
        world.next_turn()
        turns += 1
    # 15 MiB at 80 units each; a user has 300 units in a turn.
    assert turns >= 4
