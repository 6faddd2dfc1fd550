"""What tests of the class message share: transfers of both directions, in short."""

from __future__ import annotations

from typing import Any

from harebell.wire.v09 import methods_transitional as m
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC
from harebell.wire.v09.transfer import (
    Transfer,
    TransferProperties,
    decode_transfer,
    encode_transfer,
    read_transfer,
    write_transfer,
)
from harebell.wire.v09.transitional_types import INLINE, REFERENCE
from harebell.wire.v09.typed_fields import FieldDialect
from tests.conformance.frames import METHOD
from tests.conformance.v010t.peer import Peer

_FIELDS = set(Transfer.__struct_fields__) - {"raw", "kind", "value"}


def encoded(
    routing_key: str = "",
    body: bytes = b"",
    *,
    reference: bytes | None = None,
    dialect: FieldDialect = FieldDialect.PLAIN,
    **fields: Any,
) -> bytes:
    """The payload of message.transfer; fields of the method and properties by their names."""
    own = {name: value for name, value in fields.items() if name in _FIELDS}
    properties = TransferProperties(
        **{name: value for name, value in fields.items() if name not in _FIELDS}
    )
    return write_transfer(
        Transfer(
            routing_key=routing_key,
            raw=encode_transfer(properties, dialect=dialect),
            kind=INLINE if reference is None else REFERENCE,
            value=body if reference is None else reference,
            **own,
        )
    )


def transfer(peer: Peer, routing_key: str = "", body: bytes = b"", **fields: Any) -> int:
    """Send message.transfer; returns its number. `channel` is 1 unless told otherwise."""
    channel = fields.pop("channel", 1)
    return peer.payload(encoded(routing_key, body, **fields), channel)


def transferred(peer: Peer, routing_key: str = "", body: bytes = b"", **fields: Any) -> int:
    """The same, until it is complete."""
    number = transfer(peer, routing_key, body, **fields)
    peer.settle(fields.get("channel", 1))
    return number


class Arrived:
    """A transfer that came.

    Attributes:
        number: of the transfer as a command of the broker's.
        transfer: as it stands on the wire.
        properties: decoded.
        body: inline or by reference.
        pieces: octets of the appends; empty where it came inline.
    """

    def __init__(self, number: int, found: Transfer, body: bytes, pieces: list[int]) -> None:
        self.number = number
        self.transfer = found
        self.properties = decode_transfer(found.raw)
        self.body = body
        self.pieces = pieces


def expect_transfer(
    peer: Peer, body: bytes | None = None, channel: int = 1, **fields: Any
) -> Arrived:
    """message.transfer with this body and these fields or properties."""
    frame = peer.next_frame("message.transfer")
    assert (frame.kind, frame.channel) == (METHOD, channel), frame
    opened = SPEC.decode(frame.payload)
    if isinstance(opened, m.MessageOpen):
        arrived = _by_reference(peer, opened.reference, channel)
    else:
        assert isinstance(opened, m.MessageTransfer), f"expected message.transfer, got {opened}"
        found = read_transfer(frame.payload)
        assert found.kind == INLINE
        arrived = Arrived(peer.received(channel), found, found.value, [])
    assert arrived.transfer.content_length == len(arrived.body)
    if body is not None:
        assert arrived.body == body
    for name, value in fields.items():
        where = arrived.transfer if name in _FIELDS else arrived.properties
        assert getattr(where, name) == value, f"{name} of {where}"
    return arrived


def _by_reference(peer: Peer, name: bytes, channel: int) -> Arrived:
    frame = peer.next_frame("message.transfer")
    found = read_transfer(frame.payload)
    assert (found.kind, found.value) == (REFERENCE, name)
    number = peer.received(channel)
    pieces: list[bytes] = []
    while True:
        method = SPEC.decode(peer.next_frame("message.append or message.close").payload)
        if isinstance(method, m.MessageClose):
            assert method.reference == name
            return Arrived(number, found, b"".join(pieces), [len(piece) for piece in pieces])
        assert isinstance(method, m.MessageAppend), method
        assert method.reference == name
        pieces.append(method.octets)


def acknowledge(peer: Peer, *arrived: Arrived, channel: int = 1) -> None:
    """execution.complete for just these."""
    numbers = {each.number for each in arrived}
    mark = 0
    while mark + 1 in numbers:
        mark += 1
    ranges = [(number, number) for number in sorted(numbers) if number > mark]
    peer.complete(mark, *ranges, channel=channel)


def consume(peer: Peer, queue: str, destination: str = "d", **fields: Any) -> None:
    """message.consume."""
    channel = fields.pop("channel", 1)
    peer.send(m.MessageConsume(queue=queue, destination=destination, **fields), channel)


def expect_reject(peer: Peer, code: int, *words: str, channel: int = 1) -> None:
    """message.reject with these words."""
    found = peer.expect(m.MessageReject, channel, code=code)
    for word in words:
        assert word in found.text, found
