"""Queue arguments: what would change the queue is refused, what has no effect is told."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.model.queue.arguments import check_queue_arguments, ignored_arguments

THING = "queue 'q' in vhost '/'"


@pytest.mark.parametrize("arguments", [{}, {"x-queue-type": "classic"}, {"x-unheard-of": 1}])
def test_what_is_known_or_harmless_passes(arguments: dict[str, Any]) -> None:
    check_queue_arguments(THING, arguments)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("quorum", ": \"unsupported queue type 'quorum'\""),
        (5, ": {unacceptable_type,signedint}"),
    ],
)
def test_a_queue_type_that_is_not_there_is_refused(value: Any, words: str) -> None:
    with pytest.raises(Refusal) as refused:
        check_queue_arguments(THING, {"x-queue-type": value})
    assert refused.value.kind is ErrorKind.PRECONDITION_FAILED
    assert words in refused.value.text
    assert THING in refused.value.text


def test_arguments_without_effect_are_listed() -> None:
    arguments = {"x-queue-type": "classic", "x-message-ttl": 5, "note": "mine"}
    assert ignored_arguments(arguments) == ["x-message-ttl"]
