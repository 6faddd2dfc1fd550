"""The class execution (class 140): completed commands, in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.front.amqp_0_10_transitional.completion import distance
from harebell.front.amqp_0_10_transitional.session import check_set
from harebell.front.common.errors import hard
from harebell.wire.v09 import methods_transitional as m

if TYPE_CHECKING:
    from harebell.front.amqp_0_10_transitional.channel import TransitionalChannel

_CLASS = 140


def flush(channel: TransitionalChannel, method: m.ExecutionFlush) -> None:
    """execution.flush: send completions now, and again for commands that wait for the disk."""
    channel.send_completions()


def complete(channel: TransitionalChannel, method: m.ExecutionComplete) -> None:
    """execution.complete: the client has completed commands of the broker, such as deliveries."""
    mark, ranges = method.cumulative_execution_mark, method.ranged_execution_set
    check_set(mark, ranges, "ranged-execution-set", 20, _CLASS)
    for number in (mark, *(last for _, last in ranges)):
        # Acknowledged in advance, a later delivery would be lost without a trace.
        if distance(number, channel.sent) < 0:
            text = f"command {number} was not sent, the last is {channel.sent}"
            raise hard(502, text, _CLASS, 20)
    if channel.transfers is not None:
        channel.transfers.completed(mark, ranges)


HANDLERS = {m.ExecutionFlush: flush, m.ExecutionComplete: complete}
