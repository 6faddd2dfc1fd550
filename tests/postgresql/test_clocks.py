"""Wall clocks jump by an hour, and leases do not notice."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import pytest

from harebell.client import blocking
from tests.patience import eventually
from tests.postgresql.brokers import StoreBroker, owner_of
from tests.postgresql.history import History
from tests.postgresql.servers import PostgresServer

_HOUR = 3_600
_LEASE_MS = 6_000
"""Long enough that a busy machine renews it in time."""
_LATE_SECONDS = 60
_BETWEEN_SECONDS = 1.2
"""The library looks into the file once per second."""
_LIBRARIES = Path("/usr/lib")
_JUMPS = ((1, -1), (-1, 1), (0, 0), (1, -1))
"""Where the clocks of both brokers go, in hours off."""


class Wall:
    """The wall clock of a broker; its other clocks are those of the machine.

    Args:
        path: a file with how far it is off.
    """

    def __init__(self, path: Path) -> None:
        found = sorted(_LIBRARIES.rglob("libfaketimeMT.so.1"))
        if not found:
            raise FileNotFoundError("the test needs faketime: `apt-get install -y faketime`")
        self._path = path
        self.jump(0)
        self.prefix = [
            "env",
            f"LD_PRELOAD={found[0]}",
            f"FAKETIME_TIMESTAMP_FILE={path}",
            "FAKETIME_CACHE_DURATION=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            "FAKETIME_DISABLE_SHM=1",
        ]

    def jump(self, hours: int) -> None:
        """Go to so many hours off."""
        draft = self._path.with_suffix(".new")
        draft.write_text(f"{hours * _HOUR:+d}\n")
        draft.rename(self._path)


def _hours_off(broker: StoreBroker) -> int:
    """By how many hours the clock of a broker is off, as its messages say."""
    with blocking.connect(f"amqp://guest:guest@127.0.0.1:{broker.port}/%2F") as connection:
        channel = connection.channel()
        channel.declare_queue("clock", arguments={"x-queue-type": "stream"}, durable=True)
    line = next(each for each in reversed(broker.log.splitlines()) if each[:2] == "20")
    logged = datetime.fromisoformat(line[:19]).replace(tzinfo=UTC)
    return round((logged - datetime.now(UTC)).total_seconds() / _HOUR)


@pytest.mark.timeout(600)
def test_leases_do_not_depend_on_wall_clocks(
    postgresql: PostgresServer,
    database: str,
    tmp_path: Path,
    seed: int,
    counted: Callable[[str], None],
) -> None:
    url = postgresql.url(database)
    walls = [Wall(tmp_path / name) for name in ("a", "b")]
    history = History(seed)
    epoch = "SELECT epoch FROM harebell.store"
    with (
        StoreBroker("a", url, lease_ms=_LEASE_MS, prefix=walls[0].prefix) as one,
        StoreBroker("b", url, lease_ms=_LEASE_MS, prefix=walls[1].prefix) as two,
    ):
        owner = owner_of([one, two])
        other = two if owner is one else one
        assert eventually(partial(other.has_logged, "standing by"))
        history.load.declare(owner.port)
        before = postgresql.execute(epoch, database)
        begin = time.monotonic()
        jumps = [
            (begin + _BETWEEN_SECONDS * (number + 1), partial(wall.jump, hours))
            for number, both in enumerate(_JUMPS)
            for wall, hours in zip(walls, both, strict=True)
        ]
        end_at = jumps[-1][0] + 1.2 * _LEASE_MS / 1000
        went = history.load.run(owner.port, end_at, meanwhile=jumps)
        assert not went, one.log + two.log
        assert postgresql.execute(epoch, database) == before, one.log + two.log
        assert not other.serves()
        wanted = 1 if owner is one else -1
        assert eventually(lambda: _hours_off(owner) == wanted)
        began = time.monotonic()
        assert history.load.run(owner.port, began, kill=owner.kill)
        owner_of([other])
        pause = time.monotonic() - began
        assert eventually(lambda: _hours_off(other) == -wanted)
        verdict = history.drain(other.port, f"HAREBELL_SEED={seed}")
    assert pause < _LATE_SECONDS
    counted(f"{2 * len(_JUMPS)} jumps; {verdict}; fail-over {pause:.1f} s")
