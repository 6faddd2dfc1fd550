"""How far a broker is behind: bytes and seconds since what it has read."""

from __future__ import annotations

import pytest

from harebell.cluster.limits import LAG_SAMPLES
from harebell.cluster.postgresql.standby_lag import Lag, LogHistory


def test_a_broker_that_has_read_everything_is_not_behind() -> None:
    log = LogHistory()
    log.note(10.0, 4, 0)
    log.note(12.0, 9, 500)
    assert log.lag_of(9) == Lag(0, 0.0)
    # It has read what came after the last renewal.
    assert log.lag_of(11) == Lag(0, 0.0)


def test_a_broker_is_behind_by_what_was_written_since_it_has_read_everything() -> None:
    log = LogHistory()
    for at, number, written in ((10.0, 4, 0), (12.0, 9, 500), (14.0, 20, 900)):
        log.note(at, number, written)
    assert log.lag_of(9) == Lag(400, 2.0)
    assert log.lag_of(8) == Lag(900, 4.0)
    # What an earlier owner wrote is not counted.
    assert log.lag_of(2) == Lag(900, 4.0)


def test_a_log_that_was_quiet_for_long_makes_no_lag_of_that_time() -> None:
    log = LogHistory()
    for second in range(1_000):
        log.note(float(second), 4, 0)
    log.note(1_000.0, 5, 100)
    assert log.lag_of(4) == Lag(100, 1.0)


def test_a_broker_that_does_not_say_how_far_it_is_has_no_lag() -> None:
    log = LogHistory()
    assert log.lag_of(5) is None
    log.note(10.0, 4, 0)
    assert log.lag_of(0) is None


@pytest.mark.parametrize("number", [1, 20_000, 39_000, 39_999])
def test_a_long_history_is_bounded_and_nearly_as_exact(number: int) -> None:
    log = LogHistory()
    for second in range(40_000):
        log.note(float(second), second + 1, 10 * second)
        assert len(log._notes) <= LAG_SAMPLES
    lag = log.lag_of(number)
    assert lag is not None
    exact = 40_000 - number
    assert exact <= lag.seconds + 1 <= max(exact * 1.1, exact + 1)
    assert lag.size == 10 * lag.seconds
