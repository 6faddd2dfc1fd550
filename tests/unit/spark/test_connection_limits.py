"""Those that wait for a connection that a limit refuses ask less and less often."""

from __future__ import annotations

from itertools import pairwise

import pytest

from harebell.client.blocking import Connection
from harebell.client.errors import NotAllowed
from harebell.spark import connection_limits
from harebell.spark.connection_limits import NoConnectionFree, connect_in_turn

SECONDS = 1.2


class OwnTime:
    """Time that passes when somebody sleeps, and not otherwise."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


def test_a_task_that_waits_for_its_turn_asks_less_and_less_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = OwnTime()
    monkeypatch.setattr(connection_limits, "time", own)
    asked: list[float] = []

    def refused() -> Connection:
        asked.append(own.now)
        raise NotAllowed(530, "connection refused: node connection limit (1) is reached")

    with pytest.raises(NoConnectionFree, match="node connection limit"):
        connect_in_turn("broker:5672", SECONDS, refused)
    assert asked[-1] == pytest.approx(1000.0 + SECONDS)
    pauses = [after - before for before, after in pairwise(asked)]
    # The last one is what is left.
    longest = 0.2
    for pause in pauses[:-1]:
        assert longest / 2 <= pause + 1e-9
        assert pause <= longest + 1e-9
        longest *= 2
    assert 4 <= len(asked) <= 6, asked
