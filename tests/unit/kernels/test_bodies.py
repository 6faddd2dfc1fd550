"""A body that arrives in pieces is the pieces side by side."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from tests.unit.kernels.twins import twin, used

KERNELS = [used("bodies"), twin("bodies")]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize(
    "sizes",
    [
        [],
        [0],
        [1],
        [1] * 5_000,
        [16_384],
        [16_383, 1, 1],
        [131_064] * 40,
        [10, 131_064, 0, 3, 200_000, 1],
        [9_000_000, 1, 9_000_000],
    ],
)
def test_a_body_is_its_pieces_side_by_side(kernel: Any, sizes: list[int]) -> None:
    pieces = [bytes([at % 251]) * size for at, size in enumerate(sizes)]
    body = kernel.GatheredBody()
    for piece in pieces:
        body.add(piece)
    assert body.size == sum(sizes)
    assert body.take() == b"".join(pieces)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("expected", [0, 1, 3_000_000, 9_000_000, 2**40])
def test_announced_bodies_need_not_come(kernel: Any, expected: int) -> None:
    body = kernel.GatheredBody(expected)
    pieces = [bytes([at]) * 500_000 for at in range(12)]
    for piece in pieces:
        body.add(piece)
    assert body.take() == b"".join(pieces)


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_body_that_was_taken_is_not_changed_by_the_next_one(kernel: Any) -> None:
    gathered = kernel.GatheredBody()
    gathered.add(b"first" * 10_000)
    first = gathered.take()
    assert (gathered.size, gathered.take()) == (0, b"")
    gathered.add(b"next" * 10_000)
    assert (first, gathered.take()) == (b"first" * 10_000, b"next" * 10_000)
    assert sys.getrefcount(first) == 2


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_body_that_never_ends_leaves_with_its_pieces(kernel: Any) -> None:
    gathered = kernel.GatheredBody()
    piece = b"x" * 100_000
    before = sys.getrefcount(piece)
    gathered.add(piece)
    del gathered
    assert sys.getrefcount(piece) == before


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pieces", [[0], [1], [10_000], [400_000, 700_000, 1]])
def test_a_body_that_is_dropped_is_freed_from_its_end(kernel: Any, pieces: list[int]) -> None:
    body = kernel.GatheredBody(sum(pieces))
    for size in pieces:
        body.add(b"x" * size)
    left = sum(pieces)
    while left > 300_000:
        left -= 300_000
        assert body.shrink(300_000)
        assert body.size == left
    assert not body.shrink(300_000)
    assert (body.size, body.take()) == (0, b"")


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_body_that_lost_its_end_keeps_its_beginning(kernel: Any) -> None:
    body = kernel.GatheredBody()
    body.add(b"a" * 50_000)
    body.add(b"b" * 50_000)
    assert body.shrink(49_999)
    assert body.take() == b"a" * 50_000 + b"b"
