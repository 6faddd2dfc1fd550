"""What queues find in their vhost."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.model.dead_letter import DeadLetters
from tests.unit.model.things import vhost


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ({}, False),
        ({"x-dead-letter-exchange": ""}, True),
        ({"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "k"}, True),
        ({"x-dead-letter-exchange": "", "x-max-priority": 2}, True),
    ],
)
def test_queues_with_a_dead_letter_exchange_use_it(arguments: dict[str, Any], wanted: bool) -> None:
    queue: Any = vhost().declare_queue("q", arguments=arguments)
    assert isinstance(queue.dead_letters, DeadLetters) == wanted
