"""Those that wait for a connection that a limit refuses ask less and less often."""

from __future__ import annotations

import time

import pytest

from harebell.client.blocking import Connection
from harebell.client.errors import NotAllowed
from harebell.spark.connection_limits import NoConnectionFree, connect_in_turn

SECONDS = 1.2


def test_a_task_that_waits_for_its_turn_asks_less_and_less_often() -> None:
    asked: list[float] = []

    def refused() -> Connection:
        asked.append(time.monotonic())
        raise NotAllowed(530, "connection refused: node connection limit (1) is reached")

    begun = time.monotonic()
    with pytest.raises(NoConnectionFree, match="node connection limit"):
        connect_in_turn("broker:5672", SECONDS, refused)
    assert time.monotonic() - begun >= SECONDS
    # Pauses of 0.1 to 0.2, 0.2 to 0.4, 0.4 to 0.8 seconds, and what is left.
    assert 4 <= len(asked) <= 6, asked
