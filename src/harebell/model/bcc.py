"""Messages whose header BCC is for nobody to see, and who keeps it all the same.

    publish --- BCC: [b] ---> queues               keep it, and show it to nobody: a dead letter
                                                   goes to its keys again
                         ---> a delayed exchange   keeps it: its keys count when the message goes on

In class basic a message that hides its blind keys is of a family of its own, also on disk; whoever
reads it gets it converted, without the header. In other classes, and those of 0-10, queues get a
message without it, and what they are not shown travels in the object, as far as memory.
"""

from __future__ import annotations

from harebell.base.message import (
    FAMILY_09,
    FAMILY_BLIND,
    Message,
    Properties,
    copy_message,
    new_message,
)

BLIND = "BCC"
"""The header with the keys."""


class Blind(Message):
    """What queues get of a message with blind keys that is not of class basic.

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


def _of_family(message: Message, family: int) -> Message:
    properties = Properties(
        message.raw, message.delivery_mode, message.priority, message.has_headers, family=family
    )
    found = new_message(message.exchange, message.routing_key, properties, message.body)
    found.origin = message.origin
    found.due = message.due
    return found


def hidden(message: Message) -> Message:
    """A message of class basic that keeps its blind keys to itself."""
    return _of_family(message, FAMILY_BLIND)


def whole(message: Message) -> Message:
    """A message with the blind keys that it kept to itself; the same one if it kept none."""
    return _of_family(message, FAMILY_09) if message.family == FAMILY_BLIND else message


def revealed(message: Message) -> Message:
    """A copy of a message with everything that its publisher gave it."""
    if isinstance(message, Blind):
        properties = message._whole  # noqa: SLF001  # this module's own
        return Message(message.exchange, message.routing_key, properties, message.body)
    found = whole(message)
    if found is not message:
        return found
    return copy_message(message, message.exchange, message.routing_key)
