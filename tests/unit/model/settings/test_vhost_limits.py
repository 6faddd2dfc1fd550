"""The limits of a vhost: which values they take, and when they are reached."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import Refusal
from harebell.model.settings.vhost_limits import COMPONENT, MAX_QUEUES, NAME, check_limits, over
from tests.unit.model.things import vhost


@pytest.mark.parametrize(
    ("limits", "count", "reached"),
    [
        ({}, 5, None),
        ({MAX_QUEUES: -1}, 5, None),
        ({MAX_QUEUES: 0}, 0, 0),
        ({MAX_QUEUES: 5}, 4, None),
        ({MAX_QUEUES: 5}, 5, 5),
        ({MAX_QUEUES: 5}, 9, 5),
        ({"max-connections": 5}, 9, None),
    ],
)
def test_a_limit_is_reached_by_as_many_as_it_says(
    limits: dict[str, int], count: int, reached: int | None
) -> None:
    assert over(limits, MAX_QUEUES, count) == reached


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ([], "the limits of a vhost are an object"),
        ({"max-queue": 1}, "no limit 'max-queue': did you mean 'max-queues'|max-queues"),
        ({MAX_QUEUES: "1"}, "max-queues is '1': give a whole number"),
        ({MAX_QUEUES: True}, "max-queues is True"),
        ({MAX_QUEUES: 2**31}, "max-queues is 2147483648"),
    ],
)
def test_an_unknown_limit_is_refused_by_name(value: Any, sentence: str) -> None:
    with pytest.raises(Refusal, match=sentence):
        check_limits(value)


def test_a_vhost_takes_queues_up_to_its_limit() -> None:
    place = vhost()
    place.parameters.put(COMPONENT, NAME, {MAX_QUEUES: 1})
    place.check_room("a")
    place.declare_queue("a")
    with pytest.raises(
        Refusal, match=r"cannot declare queue 'b': queue limit in vhost '/' \(1\) is reached"
    ):
        place.check_room("b")
    place.parameters.delete(COMPONENT, NAME)
    place.check_room("b")
