"""Messages whose header BCC the queues are not shown, and the one place that keeps it.

    publish --- BCC: [b] ---> queues           without the header
                         ---> a delayed exchange   with it: its keys count when the message goes on

All queues of a publish get one object; so what they are not shown travels in it, as far as memory.
"""

from __future__ import annotations

from harebell.base.message import Message, Properties, copy_message


class Blind(Message):
    """What queues get of a message with blind keys.

    Args:
        exchange: the exchange it was published to.
        routing_key: the routing key it was published with.
        seen: its properties without the blind keys.
        whole: its properties as they came.
        body: its body.
    """

    __slots__ = ("_whole",)

    def __init__(
        self, exchange: str, routing_key: str, seen: Properties, whole: Properties, body: bytes
    ) -> None:
        super().__init__(exchange, routing_key, seen, body)
        self._whole = whole


def revealed(message: Message) -> Message:
    """A copy of a message with everything that its publisher gave it."""
    if isinstance(message, Blind):
        whole = message._whole  # noqa: SLF001  # this module's own
        return Message(message.exchange, message.routing_key, whole, message.body)
    return copy_message(message, message.exchange, message.routing_key)
