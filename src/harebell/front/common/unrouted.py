"""Messages that had to reach a queue and reach none, told in a few words."""

from __future__ import annotations

from collections.abc import Sequence

from harebell.base.message import Message

NO_ROUTE = 312
"""The reply code of basic.return, and of the refusal of work that is one for all messages."""
_SHOWN_WAYS = 3


def ways_of(lost: Sequence[Message]) -> str:
    """The first routing keys and exchanges by which they were sent."""
    ways = dict.fromkeys((message.exchange, message.routing_key) for message in lost)
    shown = ", ".join(
        f"'{key}' at exchange '{exchange}'" for exchange, key in list(ways)[:_SHOWN_WAYS]
    )
    return shown + (f" and {len(ways) - _SHOWN_WAYS} more" if len(ways) > _SHOWN_WAYS else "")
