"""A peer of AMQP 1.0 in memory: performatives in, performatives out.

peer = LinkPeer(World()).open()
peer.attach("/queue/q")
assert peer.publish(b"x") == [Disposition(True, 0, settled=True, state=Accepted())]
"""

from __future__ import annotations

from typing import Any

from harebell.wire import HEADER_1_0, HEADER_1_0_SASL
from harebell.wire.v1 import composites as c
from harebell.wire.v1.described_list import DescribedList
from harebell.wire.v1.frames import HEAD, SASL, encode_frame
from harebell.wire.v1.performatives import decode_performative
from harebell.wire.v1.sections import data_section, encode_sections
from tests.unit.front.amqp_0_9_1.world import World


class LinkPeer:
    """One peer.

    Attributes:
        connection: of the broker.
        sent: how many deliveries it has sent.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self._octets = world.connect()
        self.sent = 0

    @property
    def connection(self) -> Any:
        """The connection of the broker, with its own type."""
        return self._octets.connection

    @property
    def session(self) -> Any:
        """The session on channel 0."""
        return self.connection.channels[0]

    def give(self, data: bytes) -> list[DescribedList]:
        """Send octets; return what comes back."""
        self._octets.give(data)
        return self.taken()

    def ask(self, *values: DescribedList, kind: int = 0) -> list[DescribedList]:
        """Send performatives; return what comes back."""
        return self.give(b"".join(encode_frame(value.encoded(), 0, kind) for value in values))

    def taken(self) -> list[DescribedList]:
        """Return the performatives that were written, without payloads."""
        data = self.connection.take_output(self.world.now)
        values: list[DescribedList] = []
        while data:
            if data.startswith(b"AMQP"):
                data = data[8:]
                continue
            size = int.from_bytes(data[:4])
            if size > HEAD:
                values.append(decode_performative(data[HEAD:size])[0])
            data = data[size:]
        return values

    def open(self, max_frame_size: int = 2**32 - 1) -> LinkPeer:
        """Everything up to a session on channel 0."""
        self.give(HEADER_1_0_SASL)
        self.ask(c.SaslInit("PLAIN", b"\0guest\0guest"), kind=SASL)
        self.give(HEADER_1_0)
        opened = self.ask(
            c.Open("peer", max_frame_size=max_frame_size), c.Begin(None, 0, 2048, 2048)
        )
        assert [type(each) for each in opened] == [c.Open, c.Begin], opened
        return self

    def attach(self, address: str, handle: int = 0, durable: int = 0) -> list[DescribedList]:
        """Attach a link to publish on."""
        target = c.Target(address, durable)
        return self.ask(
            c.Attach("s", handle, False, source=c.Source(), target=target, initial_delivery_count=0)
        )

    def receive(self, address: str, handle: int = 1, credit: int = 0) -> list[DescribedList]:
        """Attach a link to consume on, and give it credit."""
        attach = c.Attach("r", handle, True, source=c.Source(address), target=c.Target())
        return self.ask(attach, c.Flow(0, 2048, 0, 2048, handle, 0, credit))

    def publish(self, body: bytes, handle: int = 0, durable: bool = False) -> list[DescribedList]:
        """Publish a message."""
        return self.publish_all([body], handle, durable)

    def publish_all(
        self, bodies: list[bytes], handle: int = 0, durable: bool = False
    ) -> list[DescribedList]:
        """Publish messages that come with one read."""
        header = encode_sections(c.Header(durable=True) if durable else None)
        frames = []
        for body in bodies:
            transfer = c.Transfer(handle, self.sent, self.sent.to_bytes(4), 0)
            self.sent += 1
            frames.append(encode_frame(transfer.encoded() + header + data_section(body)))
        return self.give(b"".join(frames))
