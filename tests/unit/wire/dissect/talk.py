"""What a client says in 0-9-1, for the tests of what is made of it."""

from __future__ import annotations

from harebell.wire.dissect import Dissector, Event
from harebell.wire.v09 import methods
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from harebell.wire.v09.content import BasicProperties, encode_properties

HEADER = b"AMQP\x00\x00\x09\x01"
SECRET = b"\0guest\0very secret indeed"


def frame(method: methods.Method, channel: int = 0) -> bytes:
    """A method frame of 0-9-1."""
    return framed(1, channel, AMQP_0_9_1.encode(method))


def framed(kind: int, channel: int, payload: bytes) -> bytes:
    """Any frame."""
    return bytes((kind,)) + channel.to_bytes(2) + len(payload).to_bytes(4) + payload + b"\xce"


START_OK = methods.ConnectionStartOk(mechanism="PLAIN", response=SECRET, locale="en_US")
PUBLISH = methods.BasicPublish(exchange="x", routing_key="k", mandatory=True)
CONTENT = b"\x00\x3c\x00\x00" + (5).to_bytes(8)
PROPERTIES = encode_properties(BasicProperties(priority=3, headers={"a": 1}))
CLIENT = (
    HEADER
    + frame(START_OK)
    + frame(PUBLISH, 7)
    + framed(2, 7, CONTENT + PROPERTIES)
    + framed(3, 7, b"hello")
    + framed(8, 0, b"")
)


def fed(data: bytes, pieces: int = 1, *, from_client: bool = True) -> list[Event]:
    """The events of what one side sends, in pieces of some length."""
    dissector = Dissector()
    found: list[Event] = []
    for at in range(0, len(data), pieces):
        found += dissector.feed(from_client, data[at : at + pieces])
    return found
