"""Messages that reach no queue are told by the first ways they were sent."""

from __future__ import annotations

import pytest

from harebell.front.operations.returns import routes_of
from tests.unit.model.things import message


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (["a"], "'a' at exchange 'e'"),
        (["a", "a", "b"], "'a' at exchange 'e', 'b' at exchange 'e'"),
        (
            ["a", "b", "c", "d", "e"],
            "'a' at exchange 'e', 'b' at exchange 'e', 'c' at exchange 'e' and 2 more",
        ),
    ],
)
def test_three_ways_are_told_and_each_once(keys: list[str], told: str) -> None:
    assert routes_of([message(key=key, exchange="e") for key in keys]) == told
