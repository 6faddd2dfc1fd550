"""Looking ahead in a list of messages changes nothing about them."""

from __future__ import annotations

import sys

from harebell.base.message import Message, Properties
from tests.unit.kernels.twins import twin, used

KERNELS = [used("prefetch"), twin("prefetch")]


def test_messages_that_are_looked_ahead_at_stay_as_they_are() -> None:
    body = b"a body of its own" * 20
    messages = [Message("e", "k", Properties(b"\0\0"), body) for _ in range(30)]
    settled: list[Message | None] = [None if at % 3 else each for at, each in enumerate(messages)]
    before = [sys.getrefcount(each) for each in (*messages, body)]
    for kernel in KERNELS:
        for listed in (messages, settled, messages[:3], [None] * 30, []):
            for index in range(-40, 40):
                assert kernel.prefetch_after(listed, index) == 0
    assert [sys.getrefcount(each) for each in (*messages, body)] == before
    assert {each.body for each in messages} == {body}
