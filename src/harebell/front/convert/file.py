"""Between class basic and class file.

basic                                       file
content-type content-encoding headers       the properties of the same names
priority reply-to message-id timestamp
cluster-id
header x-amqp-filename                      filename
correlation-id expiration type user-id      headers x-amqp-<name>
app-id
delivery-mode 2                             nothing: a file is always persistent
delivery-mode other than 2, or none         header x-amqp-delivery-mode (0 for none)
"""

from __future__ import annotations

from harebell.base.message import PERSISTENT, Message
from harebell.front.convert import carried
from harebell.wire.v09.property_list import FILE


def to_basic(message: Message) -> Message:
    """Convert a file to class basic."""
    return carried.to_basic(message, FILE, PERSISTENT)


def from_basic(message: Message) -> Message:
    """Convert a message of class basic to a file."""
    return carried.from_basic(message, FILE, PERSISTENT)
