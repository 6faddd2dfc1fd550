"""Between class basic and class stream.

basic                                       stream
content-type content-encoding headers       the properties of the same names
priority timestamp
correlation-id reply-to expiration          headers x-amqp-<name>
message-id type user-id app-id cluster-id
delivery-mode                               header x-amqp-delivery-mode
"""

from __future__ import annotations

from harebell.base.message import Message
from harebell.front.convert import carried
from harebell.wire.v09.property_list import STREAM


def to_basic(message: Message) -> Message:
    """Convert a packet to class basic."""
    return carried.to_basic(message, STREAM, None)


def from_basic(message: Message) -> Message:
    """Convert a message of class basic to a packet."""
    return carried.from_basic(message, STREAM, None)
