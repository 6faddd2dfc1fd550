"""A rule of 0-8 for classes file and stream, and a peer of transitional 0-10 that stages files."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL
from harebell.wire.v09.methods_transitional import ExecutionComplete, ExecutionFlush
from tests.conformance.v010t.peer import HEADER_PREVIEW
from tests.conformance.v08.contents import Peer08

_APART = 21
"""What is added to the number of a rule of 0-8 for the rule of 0-10t that says the same."""
_QOS = 146
"""The rule of stream.qos, of which 0-10t makes two."""


def rule(*ids: str) -> pytest.MarkDecorator:
    """The mark of rules of 0-8, and of those of transitional 0-10 that say the same."""
    numbers = [int(each.removeprefix("0-8#")) for each in ids]
    same = {number + _APART + (number > _QOS) for number in numbers}
    same |= {number + _APART + 1 for number in numbers if number == _QOS}
    return pytest.mark.rule(*ids, *(f"0-10t#{number:03}" for number in sorted(same)))


class Peer10t(Peer08):
    """The peer of 0-8 in transitional 0-10."""

    SPEC = AMQP_0_10_TRANSITIONAL
    GREETING = HEADER_PREVIEW

    def ask(self, method: m.Method, channel: int = 1) -> Any:
        """A method and its reply, or that it is complete where it has none."""
        if self.SPEC.spec_of(method).responses:
            return super().ask(method, channel)
        self.send(method, ExecutionFlush(), channel=channel)
        return self.expect(ExecutionComplete, channel)
