"""A full disk makes publishers wait and nobody else, and what was confirmed stays.

The disk is a small tmpfs. Either the broker is told to keep some of it free, or it is let run into
the end; in both cases publishers are told with connection.blocked, consumers go on, and publishing
goes on by itself when there is room.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harebell.wire.v09 import methods as m
from tests.robustness.bulk import Filler, Order, declare, depth, drain
from tests.robustness.lives import kill, life
from tests.robustness.raw import MIB
from tests.robustness.small_disk import SmallDisk, small_disk, wait_for_room
from tests.robustness.swift import Link, acknowledgement
from tests.running import RunningBroker

QUEUE, OTHER = "full", "waiting"
SIZE = 1024
DISK_OCTETS = 96 * MIB
BLOCKED_SECONDS = 90.0
_MAX = 40_000
_WINDOW = 2_000
_PATIENCE_SECONDS = 0.2
_SEGMENT = ("--segment-bytes", str(MIB))
_PER_CASE = {
    "the limit is reached": ("--disk-free-limit", str(24 * MIB)),
    "the disk is full": ("--disk-free-limit", "0"),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A disk of its own for every test."""
    with small_disk(tmp_path / "disk", DISK_OCTETS) as made:
        yield made


class Watcher:
    """A publisher that can be told to wait, and notes it down."""

    def __init__(self, port: int, queue: str) -> None:
        self.filler = Filler(port, queue, SIZE)
        self.blocked: str | None = None

    def hear(self, seconds: float = 0.05) -> None:
        """Read what comes."""
        link = self.filler.link
        if link.readable(seconds):
            link.read()
        while link.methods:
            method = link.methods.pop(0)
            if isinstance(method, m.ConnectionBlocked):
                self.blocked = method.reason
            else:
                assert isinstance(method, m.ConnectionUnblocked), method
                self.blocked = None

    def publish_until_blocked(self) -> None:
        """Publish with few confirms missing, so that not much is on the way when it is blocked.

        Whoever does not publish is not told, so it goes on slowly even when no confirms come.
        """
        until = time.monotonic() + BLOCKED_SECONDS * 3
        last = 0.0
        while self.blocked is None:
            now = time.monotonic()
            assert now < until, f"never blocked: {self.filler.sent} were published"
            room = self.filler.sent - self.filler.confirmed < _WINDOW
            if room or now > last + _PATIENCE_SECONDS:
                assert self.filler.confirmed < _MAX, "more was confirmed than the disk can hold"
                self.filler.send_block()
                last = now
            self.hear(0.001)

    def wait_until_free(self) -> None:
        """Until it may publish again and everything sent is confirmed."""
        begin = time.monotonic()
        while self.blocked is not None or self.filler.confirmed < self.filler.sent:
            assert time.monotonic() < begin + BLOCKED_SECONDS, (
                f"still blocked ({self.blocked}), {self.filler.confirmed} of "
                f"{self.filler.sent} confirmed"
            )
            self.hear()


def _with_waiting_messages(broker: RunningBroker, count: int) -> None:
    declare(broker.port, OTHER)
    filler = Filler(broker.port, OTHER, SIZE)
    filler.fill(count, 1)
    filler.link.goodbye()


def _consumers_go_on(broker: RunningBroker, count: int) -> None:
    """Somebody who consumes gets and acknowledges messages while publishers wait."""
    drain(broker.port, OTHER, count, Order(SIZE).check)


@pytest.mark.parametrize("case", list(_PER_CASE))
def test_publishers_wait_consumers_go_on_and_it_ends_by_itself(disk: SmallDisk, case: str) -> None:
    flags = (*_SEGMENT, *_PER_CASE[case])
    with life(disk.data_dir, *flags, prefix=disk.prefix) as broker:
        _with_waiting_messages(broker, 1_000)
        declare(broker.port, QUEUE)
        disk.fill(leave=30 * MIB)
        watcher = Watcher(broker.port, QUEUE)
        watcher.publish_until_blocked()
        assert "disk" in str(watcher.blocked)
        _consumers_go_on(broker, 1_000)
        disk.give_back()
        watcher.wait_until_free()
        watcher.filler.step()
        watcher.filler.wait()
        sent = watcher.filler.sent
        watcher.filler.link.goodbye()
        link = Link(broker.port)
        assert depth(link, QUEUE) == sent
        kill(broker)
    with life(disk.data_dir, *flags, prefix=disk.prefix) as broker:
        drain(broker.port, QUEUE, sent, Order(SIZE).check)
        assert broker.stop() == 0


@pytest.mark.parametrize("killed", [False, True])
def test_deliveries_make_room_on_a_disk_that_the_broker_has_filled(
    disk: SmallDisk, killed: bool
) -> None:
    flags = (*_SEGMENT, *_PER_CASE["the disk is full"])
    with life(disk.data_dir, *flags, prefix=disk.prefix) as broker:
        declare(broker.port, QUEUE)
        disk.fill(leave=30 * MIB)
        watcher = Watcher(broker.port, QUEUE)
        watcher.publish_until_blocked()
        if not killed:
            drain(broker.port, QUEUE, watcher.filler.sent, Order(SIZE).check)
            watcher.wait_until_free()
            watcher.filler.link.goodbye()
            assert wait_for_room(disk, 10 * MIB)
        kill(broker)
    with life(disk.data_dir, *flags, prefix=disk.prefix) as broker:
        link = Link(broker.port)
        drain(broker.port, QUEUE, depth(link, QUEUE), lambda delivery: None)
        again = Watcher(broker.port, QUEUE)
        again.filler.send_block()
        again.wait_until_free()
        assert wait_for_room(disk, 10 * MIB)
        assert broker.stop() == 0


def test_messages_confirmed_before_the_disk_was_full_are_there_after_a_kill(
    disk: SmallDisk,
) -> None:
    flags = (*_SEGMENT, *_PER_CASE["the disk is full"])
    with life(disk.data_dir, *flags, prefix=disk.prefix) as broker:
        declare(broker.port, QUEUE)
        disk.fill(leave=8 * MIB)
        watcher = Watcher(broker.port, QUEUE)
        watcher.publish_until_blocked()
        kill(broker)
        while watcher.filler.link.alive:
            watcher.hear()
        confirmed, sent = watcher.filler.confirmed, watcher.filler.sent
    disk.give_back()
    with life(disk.data_dir, *flags, prefix=disk.prefix) as broker:
        link = Link(broker.port)
        found = depth(link, QUEUE)
        assert confirmed <= found <= sent
        drain(broker.port, QUEUE, found, Order(SIZE).check)


def test_a_broker_on_a_full_disk_starts_and_its_messages_can_be_taken(disk: SmallDisk) -> None:
    flags = (*_SEGMENT, *_PER_CASE["the disk is full"])
    with life(disk.data_dir, *flags, prefix=disk.prefix) as broker:
        _with_waiting_messages(broker, 2_000)
        kill(broker)
    disk.fill(leave=0)
    with life(disk.data_dir, *flags, prefix=disk.prefix) as broker:
        link = Link(broker.port)
        latest = 0

        def delivered(delivery: object) -> None:
            nonlocal latest
            latest = delivery.tag  # type: ignore[attr-defined]

        link.on_delivery = delivered
        link.ask(m.BasicConsume(queue=OTHER), m.BasicConsumeOk)
        while latest < 2_000:
            link.read()
        link.send(acknowledgement(latest, multiple=True))
        assert depth(link, OTHER) == 0
        disk.give_back()
        link.goodbye()
        assert broker.stop() == 0
