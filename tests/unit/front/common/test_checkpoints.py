"""Checkpoints: what was saved comes back, for a time and within a limit."""

from __future__ import annotations

import pytest

from harebell.base.gauge import Gauge
from harebell.front.common import checkpoints
from harebell.front.common.checkpoints import Checkpoints, Key
from harebell.front.limits import CHECKPOINT_COST_BYTES, CHECKPOINT_SECONDS

KEY: Key = ("/", "guest", "film")
OTHER: Key = ("/", "guest", "book")


class Hand:
    """A clock that stands where it was put."""

    now = 1_000_000

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def hand() -> Hand:
    """The time."""
    return Hand()


@pytest.fixture
def gauge() -> Gauge:
    """The memory."""
    return Gauge()


@pytest.fixture
def saved(hand: Hand, gauge: Gauge, monkeypatch: pytest.MonkeyPatch) -> Checkpoints:
    """Room for a hundred octets of each user."""
    monkeypatch.setattr(checkpoints, "CHECKPOINT_COST_BYTES", 0)
    return Checkpoints(gauge, hand, limit=400)


def test_saved_checkpoints_come_back(saved: Checkpoints, gauge: Gauge) -> None:
    saved.save(KEY, 0, [b"abc", b"def"])
    assert b"".join(saved.load(KEY) or []) == b"abcdef"
    assert gauge.used == 6
    assert saved.load(OTHER) is None


def test_a_later_checkpoint_adds_to_the_one_before(saved: Checkpoints, gauge: Gauge) -> None:
    saved.save(KEY, 0, [b"abc"])
    saved.save(KEY, 3, [b"def"])
    assert b"".join(saved.load(KEY) or []) == b"abcdef"
    assert gauge.used == saved.size(KEY) == 6


def test_a_checkpoint_from_the_beginning_replaces_the_one_before(
    saved: Checkpoints, gauge: Gauge
) -> None:
    saved.save(KEY, 0, [b"abc"])
    saved.save(KEY, 0, [b"xy"])
    assert b"".join(saved.load(KEY) or []) == b"xy"
    assert gauge.used == 2


def test_pieces_of_another_place_are_not_kept(saved: Checkpoints, gauge: Gauge) -> None:
    saved.save(KEY, 0, [b"abc"])
    saved.save(KEY, 7, [b"xy"])
    assert saved.load(KEY) is None
    assert gauge.used == 0


def test_forgotten_checkpoints_take_no_memory(saved: Checkpoints, gauge: Gauge) -> None:
    saved.save(KEY, 0, [b"abc"])
    saved.forget(KEY)
    saved.forget(KEY)
    assert saved.load(KEY) is None
    assert (len(saved), gauge.used) == (0, 0)


def test_the_oldest_make_room_for_the_newest(saved: Checkpoints, gauge: Gauge) -> None:
    saved.save(KEY, 0, [bytes(60)])
    saved.save(OTHER, 0, [bytes(60)])
    assert saved.load(KEY) is None
    assert saved.size(OTHER) == gauge.used == 60


def test_a_user_makes_room_among_his_own(saved: Checkpoints) -> None:
    others = [("/", user, "id") for user in ("ann", "bob", "eve")]
    for key in others:
        saved.save(key, 0, [bytes(100)])
    for number in range(9):
        saved.save(("/", "guest", str(number)), 0, [bytes(60)])
    assert [saved.size(key) for key in others] == [100] * 3
    assert len(saved) == 4


def test_a_body_without_octets_takes_room(hand: Hand, gauge: Gauge) -> None:
    saved = Checkpoints(gauge, hand, limit=40 * CHECKPOINT_COST_BYTES)
    for number in range(100):
        saved.save(("/", "guest", str(number)), 0, [])
    assert len(saved) == 10
    assert gauge.used == 10 * CHECKPOINT_COST_BYTES


def test_a_body_over_the_limit_is_kept_as_far_as_there_is_room(saved: Checkpoints) -> None:
    saved.save(KEY, 0, [bytes(60), bytes(60)])
    assert saved.size(KEY) == 60
    saved.save(KEY, 60, [bytes(60)])
    assert saved.size(KEY) == 60


def test_a_checkpoint_that_goes_on_counts_as_new(saved: Checkpoints) -> None:
    saved.save(KEY, 0, [bytes(30)])
    saved.save(OTHER, 0, [bytes(30)])
    saved.save(KEY, 30, [bytes(30)])
    saved.save(("/", "guest", "third"), 0, [bytes(30)])
    assert saved.load(OTHER) is None
    assert saved.size(KEY) == 60


def test_checkpoints_that_are_too_old_are_gone(
    saved: Checkpoints, hand: Hand, gauge: Gauge
) -> None:
    saved.save(KEY, 0, [b"abc"])
    hand.now += CHECKPOINT_SECONDS * 1000 - 1
    saved.save(OTHER, 0, [b"abc"])
    assert saved.load(KEY) is not None
    hand.now += 1
    assert saved.load(KEY) is None
    assert saved.load(OTHER) is not None
    assert gauge.used == 3


def test_many_tiny_pieces_become_few(hand: Hand, gauge: Gauge) -> None:
    saved = Checkpoints(gauge, hand)
    for at in range(10_000):
        saved.save(KEY, at, [b"x"])
    assert len(saved.load(KEY) or []) <= 3
    assert saved.size(KEY) == gauge.used - CHECKPOINT_COST_BYTES == 10_000
