"""One side of the comparison: runs operations on a broker and notes all that it says.

RabbitMQ works in many processes, so what an operation causes is waited for by causes: the channel
that took it answers a question, then every queue does (it has seen what the channel sent it; twice,
for what one queue dead-letters to another), then every channel does (it has sent what the queues
gave it). Confirms are noted as the set of tags, because a broker may gather them.
"""

from __future__ import annotations

import re
import time
from typing import Any

from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from tests.conformance.frames import HEADER, METHOD
from tests.conformance.raw import WAIT_SECONDS, Peer, encoded, publish_octets
from tests.conformance.sites import SocketWire
from tests.interop.differential.operations import CHANNELS, CONNECTIONS, Operation
from tests.interop.differential.reviewed import as_reviewed, shown
from tests.interop.differential.richer import PAUSE_SECONDS

_QUESTION = m.ExchangeDeclare(exchange="amq.fanout", type="fanout", passive=True)
_ADMIN = 7


class Side:
    """Connections to one broker.

    Args:
        port: where it listens.
        queues: the queues that operations may make.
        second: name and password of the user of the second connection; None for guest.
        counted: whether counts of messages and consumers are noted.
    """

    def __init__(
        self,
        port: int,
        queues: tuple[str, ...],
        second: tuple[str, str] | None = None,
        *,
        counted: bool = True,
    ) -> None:
        self.counted = counted
        self.queues = queues
        self.notes: list[str] = []
        self.confirmed: dict[tuple[int, int], int] = {}
        self.ended = False
        self.peers = [Peer(None, SocketWire(port)) for _ in range(CONNECTIONS)]  # type: ignore[arg-type]
        for number, peer in enumerate(self.peers):
            peer.greet()
            user, password = second if second and number else ("guest", "guest")
            peer.log_in(capabilities=["consumer_cancel_notify"], user=user, password=password)
            peer.send(m.ConnectionTuneOk(100, 131_072, 0))
            peer.ask(m.ConnectionOpen())
            for channel in (*CHANNELS, _ADMIN):
                peer.ask(m.ChannelOpen(), channel)

    def run(self, operation: Operation) -> list[str]:
        """What one operation made the broker say, by connection and channel."""
        self.notes = []
        number, channel = operation.connection, operation.channel
        method = operation.method
        if isinstance(method, m.BasicPublish):
            octets = publish_octets(
                method.exchange, method.routing_key, operation.body, operation.properties,
                channel, mandatory=method.mandatory, immediate=method.immediate,
            )  # fmt: skip
        else:
            octets = encoded(method, channel)
        self.peers[number].send_bytes(octets)
        replies = AMQP_0_9_1.spec_of(method).responses
        if isinstance(method, m.BasicPublish) and not self.counted:
            # Where nothing can be counted the publish is waited for by its confirm.
            replies = ("basic.ack",)
        if not replies or self._await(number, channel, replies):
            self._ask(number, channel)
        if operation.pause:
            # What was published is in its queues before its time begins to run out here.
            self._settle()
            time.sleep(PAUSE_SECONDS)
        return self.more()

    def more(self) -> list[str]:
        """All that the last operation made the broker say, with what has come late."""
        self._settle()
        # Those that arrived on one channel stay in their order.
        return sorted(self.notes, key=lambda note: note[:4])

    def _settle(self) -> None:
        for _ in range(2):
            for name in self.queues:
                self._ask(0, _ADMIN, m.QueueDeclare(queue=name, passive=True))
        for number in range(CONNECTIONS):
            for channel in (*CHANNELS, _ADMIN):
                self._ask(number, channel)

    def _ask(self, number: int, channel: int, question: m.Method = _QUESTION) -> None:
        """A question of our own on a channel; its answer is not noted."""
        if not self.ended:
            self.peers[number].send(question, channel=channel)
            spec = AMQP_0_9_1.spec_of(question)
            self._await(number, channel, spec.responses, noted=False)

    def _await(
        self, number: int, channel: int, replies: tuple[str, ...], *, noted: bool = True
    ) -> bool:
        """Note what comes until a reply; False when channel or connection closed instead."""
        while True:
            at, method, content = self._next(number)
            if method.NAME in replies and at == channel:
                if noted:
                    self._note(number, at, method, content)
                return True
            if channel != _ADMIN or at != _ADMIN:
                self._note(number, at, method, content)
            if isinstance(method, m.ConnectionClose):
                self.peers[number].send(m.ConnectionCloseOk())
                self.ended = True
                return False
            if isinstance(method, m.ChannelClose):
                self.peers[number].send(m.ChannelCloseOk(), channel=at)
                self.confirmed.pop((number, at), None)
                self.peers[number].send(m.ChannelOpen(), channel=at)
                self._await(number, at, ("channel.open-ok",), noted=False)
                if not self.counted:
                    self._ask(number, at, m.ConfirmSelect())
                if at == channel:
                    return False

    def _next(self, number: int) -> tuple[int, Any, str]:
        """The next method on a connection, with its content as text."""
        peer = self.peers[number]
        found = peer.next_frame("what the operation causes")
        assert found.kind == METHOD, f"a frame of kind {found.kind} without a method"
        method = AMQP_0_9_1.decode(found.payload)
        if not isinstance(method, m.BasicDeliver | m.BasicGetOk | m.BasicReturn):
            return found.channel, method, ""
        header = peer.next_frame("a content header")
        assert header.kind == HEADER
        size = int.from_bytes(header.payload[4:12], "big")
        body = b""
        while len(body) < size:
            body += peer.next_frame("a content body").payload
        properties = shown(header.payload[12:], returned=isinstance(method, m.BasicReturn))
        return found.channel, method, f" {properties} {body!r}"

    def _note(self, number: int, channel: int, method: Any, content: str) -> None:
        if isinstance(method, m.BasicAck):
            at = (number, channel)
            before = self.confirmed.get(at, 0)
            tags = range(before if method.multiple else method.delivery_tag - 1,
                         method.delivery_tag)  # fmt: skip
            self.confirmed[at] = max(before, method.delivery_tag)
            self.notes += [f"{number}.{channel} confirmed {tag + 1}" for tag in tags]
            return
        said = f"{number}.{channel} {method}{content}"
        if not self.counted:
            said = re.sub(r"(message|consumer)_count=\d+", r"\1_count=some", said)
        self.notes.append(as_reviewed(said))

    def close(self) -> None:
        """Close the connections; what was theirs alone is gone when this returns."""
        for peer in self.peers:
            peer.send(m.ConnectionClose(200, "bye"))
        over = encoded(m.ConnectionCloseOk())
        for peer in self.peers:
            # RabbitMQ waits for us to end the socket.
            while (found := peer._frame(WAIT_SECONDS)) is not None and found.octets != over:
                continue
            peer.wire.drop()
