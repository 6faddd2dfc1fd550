"""How long syncs are put off: everywhere, in some directories, and above them."""

from __future__ import annotations

import pytest

from harebell.base.durability import Durability
from harebell.base.lags import NEVER, Lags, lag_of


@pytest.mark.parametrize(
    ("durability", "lag"),
    [
        (Durability("fsync"), 0),
        (Durability("os"), NEVER),
        (Durability("interval"), 500),
        (Durability("interval", 20), 20),
    ],
)
def test_a_durability_is_a_lag(durability: Durability, lag: int) -> None:
    assert lag_of(durability, 500) == lag


def test_everything_has_the_common_lag_until_a_directory_has_its_own() -> None:
    lags = Lags(7)
    assert lags.of("queues/a") == lags.of("queues/a/1.seg") == lags.of("") == 7
    lags.put("queues/a", NEVER)
    assert lags.of("queues/a") == lags.of("queues/a/1.seg") == NEVER
    assert lags.of("queues/b/1.seg") == 7


def test_a_directory_without_a_lag_of_its_own_follows_the_strictest() -> None:
    lags = Lags(NEVER)
    lags.put("queues/a", 50)
    assert lags.of("queues") == 50
    lags.put("queues/b", 0)
    lags.put("queues/c", 0)
    assert lags.of("queues") == 0
    lags.put("queues/b", None)
    assert lags.of("queues") == 0
    lags.put("queues/c", NEVER)
    assert lags.of("queues") == 50
    lags.put("queues/a", None)
    assert lags.of("queues") == NEVER


@pytest.mark.parametrize(
    ("common", "before", "after", "stricter"),
    [
        (0, None, 0, False),
        (0, NEVER, None, True),
        (0, 50, 0, True),
        (NEVER, None, 50, True),
        (50, None, NEVER, False),
        (50, 20, None, False),
        (50, 20, 10, True),
    ],
)
def test_a_change_says_whether_it_is_stricter(
    common: int, before: int | None, after: int | None, stricter: bool
) -> None:
    lags = Lags(common)
    if before is not None:
        lags.put("a", before)
    assert lags.put("a", after) == stricter
