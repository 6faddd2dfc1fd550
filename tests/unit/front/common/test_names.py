"""Names as clients give them, and names the broker makes up."""

from __future__ import annotations

import re

import pytest

from harebell.base.errors import Refusal
from harebell.front.common.names import clean, generated, meant


def test_line_ends_are_taken_out_of_names() -> None:
    assert clean("a\r\nb\n") == "ab"


def test_generated_names_are_long_random_and_safe() -> None:
    name = generated("amq.gen-", lambda size: bytes(range(size)))
    assert re.fullmatch(r"amq\.gen-[A-Za-z0-9_-]{22}", name)
    assert name != generated("amq.gen-", lambda size: bytes(size))


def test_an_empty_name_means_the_queue_declared_last() -> None:
    assert meant("", "last") == "last"
    assert meant("q\n", "last") == "q"
    with pytest.raises(Refusal, match="no previously declared queue"):
        meant("", "")
