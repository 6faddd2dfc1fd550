"""Waiting ends when what is waited for is there, and says when it never comes."""

from __future__ import annotations

from tests.patience import eventually


def test_it_is_waited_for_until_it_is_there() -> None:
    answers = [False, False, True, False]
    assert eventually(lambda: answers.pop(0))
    assert answers == [False]


def test_what_never_comes_is_not_waited_for_for_ever() -> None:
    assert not eventually(lambda: False, seconds=0.02)
