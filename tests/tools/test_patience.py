"""Waiting ends when what is waited for is there, and says when it never comes."""

from __future__ import annotations

import pika

from tests.patience import SECONDS, eventually


def test_it_is_waited_for_until_it_is_there() -> None:
    answers = [False, False, True, False]
    assert eventually(lambda: answers.pop(0))
    assert answers == [False]


def test_what_never_comes_is_not_waited_for_for_ever() -> None:
    assert not eventually(lambda: False, seconds=0.02)


def test_pika_waits_as_long() -> None:
    assert pika.ConnectionParameters().socket_timeout == SECONDS
    assert pika.URLParameters("amqp://127.0.0.1").stack_timeout > SECONDS
