"""Answers to come."""

from __future__ import annotations

import pytest

from harebell.client.errors import ConnectionLost
from harebell.client.protocol.call import Call


def test_a_call_is_settled_once_and_tells_whoever_asked() -> None:
    call: Call[int] = Call()
    heard: list[object] = []
    call.when_done(lambda done: heard.append(("before", done.value())))
    assert not call.done
    call.succeed(5)
    call.succeed(6)
    call.fail(ConnectionLost("late"))
    call.when_done(lambda done: heard.append(("after", done.value())))
    assert call.value() == 5
    assert heard == [("before", 5), ("after", 5)]


def test_a_failed_call_raises_its_error_every_time() -> None:
    call: Call[int] = Call()
    call.fail(ConnectionLost("gone"))
    call.succeed(1)
    for _ in range(2):
        with pytest.raises(ConnectionLost, match="gone"):
            call.value()


def test_asking_for_a_value_too_early_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError):
        Call[int]().value()
