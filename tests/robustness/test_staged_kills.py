"""kill -9 instead of the N-th call to the disk, while batches are committed and repeats dropped."""

from __future__ import annotations

import signal
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from harebell.base import impl
from harebell.client import blocking
from harebell.client.errors import ConnectionFailed, ConnectionLost
from harebell.management.control.client import CommandError, ControlError, ask_command
from tests.patience import SECONDS
from tests.robustness import strace
from tests.robustness.lives import life
from tests.running import DidNotStart

POINTS = 4
SOAK_POINTS = 100
KINDS = {"pwrite64": 120, "fdatasync,fsync,syncfs": 120, "write": 120}
"""Calls at which the broker is killed, and the last of them that is chosen."""
if impl.chosen() == impl.NATIVE:
    # Python has no call for it.
    KINDS["sync_file_range"] = 12
SEGMENTS = ("65536", "8388608")
"""In small segments every commit has files to make, and in large ones rows are not synced."""
_ROWS, _MANY_ROWS = 200, 6_000
_EVERY = 4
"""One of so many batches is large: its rows are in several commits before it ends."""
_BODY_BYTES = 400
_NUMBERS = 50
_OTHER = "other"
_MAX_BATCHES = 500
"""Of one life: it is killed long before."""


def _rows(number: int) -> range:
    """The numbers of the rows of a batch, which follow those of the batch before."""
    first = number * _ROWS + number // _EVERY * (_MANY_ROWS - _ROWS)
    return range(first, first + (_MANY_ROWS if number % _EVERY == _EVERY - 1 else _ROWS))


def _batch(number: int) -> bytes:
    """The rows of a batch; their bodies are numbers that no other row has."""
    rows = [b"%*d" % (_BODY_BYTES, row) for row in _rows(number)]
    return bytes(pa.record_batch({"value": rows}).serialize().to_pybytes())


class _Sender:
    """Sends batches and numbered messages, and does the last ones again after each loss."""

    def __init__(self, rng: Random) -> None:
        self._rng = rng
        self._run = 0
        self.repeated = 0

    def live(self, url: str, batches: int) -> None:
        """Send so many batches, or until the broker dies."""
        self._run += 1
        run = f"run {self._run}"
        with blocking.connect(url) as connection:
            channel = connection.channel()
            for queue in ("staged", "numbered"):
                channel.declare_queue(queue, durable=True)
            first = channel.stage_open("query", run)
            for number in range(max(first - 1, 0), first + batches):
                self._stage(channel, run, number, first)
                self._number(connection)

    def _stage(self, channel: blocking.Channel, run: str, number: int, first: int) -> None:
        attempt = self._rng.randrange(1000)
        options = {"batch": number, "attempt": attempt, "part": 0, "number": 0}
        channel.stage_append("query", run, **options, columns="value", data=_batch(number))
        parts = [(0, attempt, len(_rows(number)) if number >= first else 0)]
        done = channel.stage_commit("query", run, batch=number, parts=parts, routing_key="staged")
        assert done.repeated == (number < first)
        self.repeated += done.repeated

    def _number(self, connection: blocking.Connection) -> None:
        channel = connection.channel()
        first = channel.publisher_declare("publisher").next
        for number in range(max(first - 10, 0), first + _NUMBERS):
            channel.publish_nowait(
                b"%d" % number,
                routing_key="numbered",
                delivery_mode=2,
                headers={"x-publishing-id": number},
            )
        channel.close()


class _Rotating(_Sender):
    """A sender whose publishers go to another user after each batch, as when users change.

    Args:
        rng: chooses the attempts.
        data_dir: of the broker.
    """

    def __init__(self, rng: Random, data_dir: Path) -> None:
        super().__init__(rng)
        self._data_dir = data_dir
        # By publisher; a user is unknown when the broker died before it answered.
        self._owners: dict[str, str | None] = {}
        self.handed = 0

    def live(self, url: str, batches: int) -> None:
        """Send so many batches, or until the broker dies, each with the rights of another user."""
        if _OTHER not in {row["name"] for row in self._ask("users.list")}:
            self._ask("users.add", name=_OTHER, password=_OTHER)
        every = {"configure": ".*", "write": ".*", "read": ".*"}
        self._ask("permissions.set", user=_OTHER, **every)
        self._look()
        for _ in range(batches):
            user = self._owners.get("query", "guest")
            self._hand_over("publisher", user)
            theirs = url.replace("://", f"://{user}:{user}@")
            super().live(theirs, 1)
            self._leave_staged(theirs)
            other = _OTHER if user == "guest" else "guest"
            self._look()
            for name in ("query", "publisher"):
                self._hand_over(name, other)

    def _leave_staged(self, url: str) -> None:
        """Stage rows that nobody commits: a hand-over drops them."""
        with blocking.connect(url) as connection:
            channel = connection.channel()
            run = f"run {self._run}"
            number = channel.stage_open("query", run)
            options = {"batch": number, "attempt": 1_001, "part": 0, "number": 0}
            channel.stage_append("query", run, **options, columns="value", data=_batch(number))

    def _look(self) -> None:
        """Compare whose the publishers are with what was answered."""
        for row in self._ask("publishers.list"):
            assert self._owners.get(row["name"]) in (None, row["user"]), (row, self._owners)
            self._owners[row["name"]] = row["user"]

    def _hand_over(self, name: str, user: str | None) -> None:
        before = self._owners.get(name)
        if before in (None, user):
            return
        self._owners[name] = None
        self._ask("publishers.hand-over", publisher=name, to=user)
        self._owners[name] = user
        self.handed += 1

    def _ask(self, command: str, **fields: object) -> Any:
        return ask_command(self._data_dir, command, fields)


def _taken(url: str, queue: str) -> list[int]:
    """Every message of a queue, as the number that it is."""
    with blocking.connect(url) as connection:
        channel = connection.channel()
        count = channel.declare_queue(queue, passive=True).message_count
        consumer = channel.consume(queue, no_ack=True, timeout=SECONDS)
        found = [int(message.body) for message in islice(consumer, count)]
        assert channel.get(queue, no_ack=True) is None
        return found


def _lives(data_dir: Path, rng: Random, sender: _Sender, points: int) -> None:
    for _ in range(points):
        kind, last = rng.choice([*KINDS.items()])
        prefix = strace.kill_at(kind, rng.randint(1, last))
        size = SEGMENTS[1] if kind == "sync_file_range" else rng.choice(SEGMENTS)
        try:
            with life(data_dir, "--segment-bytes", size, prefix=prefix) as broker:
                with pytest.raises((ConnectionLost, ConnectionFailed, ControlError)) as end:
                    sender.live(broker.address(), _MAX_BATCHES)
                assert not isinstance(end.value, CommandError), end.value
                assert broker.process.wait(60) == -signal.SIGKILL, broker.log
                assert "Traceback" not in broker.log, broker.log
        except DidNotStart as error:
            if error.code != -signal.SIGKILL:
                raise
    with life(data_dir) as broker:
        sender.live(broker.address(), 2)
        for queue in ("staged", "numbered"):
            found = _taken(broker.address(), queue)
            assert found == list(range(len(found))), f"{queue}: lost, repeated or out of order"
            assert found
        assert broker.stop() == 0


@pytest.mark.timeout(900)
def test_every_batch_and_number_is_there_once_whenever_the_broker_is_killed(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    rng = Random(seed)
    sender = _Sender(rng)
    _lives(tmp_path / "data", rng, sender, POINTS)
    counted(f"{sender.repeated} batches were committed again and not published again")


@pytest.mark.timeout(900)
def test_every_batch_and_number_is_there_once_whenever_a_hand_over_is_killed(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    rng = Random(seed)
    sender = _Rotating(rng, tmp_path / "data")
    _lives(tmp_path / "data", rng, sender, POINTS)
    counted(f"{sender.handed} hand-overs, {sender.repeated} batches committed again")
    assert sender.handed


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_batches_and_numbers_bear_many_kills(tmp_path: Path, seed: int) -> None:
    rng = Random(seed)
    sender = _Sender(rng)
    _lives(tmp_path / "data", rng, sender, SOAK_POINTS)
    assert sender.repeated > SOAK_POINTS // 10


@pytest.mark.soak
@pytest.mark.timeout(7_200)
def test_hand_overs_bear_many_kills(
    tmp_path: Path, seed: int, counted: Callable[[str], None]
) -> None:
    rng = Random(seed)
    sender = _Rotating(rng, tmp_path / "data")
    _lives(tmp_path / "data", rng, sender, SOAK_POINTS)
    counted(f"{sender.handed} hand-overs, {sender.repeated} batches committed again")
