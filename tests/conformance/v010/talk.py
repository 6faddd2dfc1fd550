"""A peer of AMQP 0-10 that does one thing after the other, and keeps what comes meanwhile.

talk = Talk(peer)
talk.do(QueueDeclare("q"))
talk.publish("", b"hello", routing_key="q")
talk.subscribe("q")
talk.bodies() == [b"hello"]
"""

from __future__ import annotations

from typing import Any

from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from harebell.wire.v010.composites import Command, Composite
from harebell.wire.v010.structs import DeliveryProperties
from tests.conformance.arriving import unique
from tests.conformance.v010.raw import Arrived, Peer010, octets_of

EXPLICIT, NONE = 0, 1
PRE_ACQUIRED, NOT_ACQUIRED = 0, 1
MESSAGES, OCTETS = 0, 1
CREDIT, WINDOW = 0, 1


def begin(peer: Peer010, channels: int = 1) -> list[Talk]:
    """An open connection with a session of its own name on each of its channels."""
    peer.open()
    for channel in range(1, channels + 1):
        peer.attach(unique("talk"), channel)
    return [Talk(peer, channel) for channel in range(1, channels + 1)]


class Talk:
    """One session.

    Attributes:
        got: what came beside completions, and was not looked at yet.
    """

    def __init__(self, peer: Peer010, channel: int = 1) -> None:
        self.peer = peer
        self.channel = channel
        self.sent = 0
        self.got: list[Arrived] = []

    # --- commands -------------------------------------------------------------------------------

    def do(self, *commands: Command) -> None:
        """Send commands in one write, and wait until the last is complete."""
        self.peer.send_bytes(
            *(octets_of(each, self.channel, each is commands[-1]) for each in commands)
        )
        self.sent += len(commands)
        self._until_complete()

    def publish(
        self, exchange: str, body: bytes, *others: Composite, accept: int = NONE, **delivery: Any
    ) -> None:
        """Transfer a message, and wait until that is complete."""
        header = (DeliveryProperties(**delivery), *others)
        self.peer.transfer(
            exchange, body, *header, channel=self.channel, sync=True, accept_mode=accept
        )
        self.sent += 1
        self._until_complete()

    def ask(self, command: Command) -> Any:
        """The result of a command."""
        number = self.sent
        self.do(command)
        for found in self.got:
            if isinstance(found.value, c.ExecutionResult) and found.value.command_id == number:
                self.got.remove(found)
                return found.value.value
        raise AssertionError(f"{command.NAME} had no result: {self.got}")

    def fails(self, command: Command, code: int, text: str) -> None:
        """The command ends the session."""
        self.peer.send(command, channel=self.channel)
        found = self.peer.expect_exception(code, text, self.sent, self.channel)
        assert (found.class_code, found.command_code) != (None, None)

    def transfer_fails(
        self, exchange: str, code: int, text: str, *header: Composite, body: bytes = b""
    ) -> None:
        """The transfer ends the session."""
        self.peer.transfer(exchange, body, *header, channel=self.channel)
        self.peer.expect_exception(code, text, self.sent, self.channel)

    def sync(self) -> None:
        """Whatever is on its way has come."""
        self.do(c.ExecutionSync())

    def complete(self, *numbers: int) -> None:
        """Tell that these deliveries are carried out."""
        ranges = tuple((number, number) for number in numbers)
        self.peer.send(k.SessionCompleted(ranges), channel=self.channel)
        self.sync()

    def _until_complete(self) -> None:
        while True:
            found = self.peer.next("session.completed")
            if isinstance(found.value, k.SessionCompleted) and found.channel == self.channel:
                if found.value.commands[-1][1] >= self.sent - 1:
                    return
            else:
                self.got.append(found)

    def leave(self) -> None:
        """The session ends, and its connection."""
        self.peer.send(k.SessionDetach(self.peer.names[self.channel]), channel=self.channel)
        self.peer.expect(k.SessionDetached, self.channel)
        self.peer.close()

    # --- deliveries -----------------------------------------------------------------------------

    def subscribe(self, queue: str, tag: str = "t", credit: int | None = None, **how: Any) -> None:
        """A subscription with credit for so many messages, without limit by default."""
        self.do(
            c.MessageSubscribe(queue, tag, **how),
            c.MessageFlow(tag, OCTETS, None),
            c.MessageFlow(tag, MESSAGES, credit),
        )

    def deliveries(self) -> list[Arrived]:
        """The messages that came, which are not kept any more."""
        found = [each for each in self.got if isinstance(each.value, c.MessageTransfer)]
        self.got = [each for each in self.got if each not in found]
        return found

    def bodies(self) -> list[bytes]:
        """Their bodies."""
        return [each.body for each in self.deliveries()]

    def others(self) -> list[Any]:
        """What else came."""
        found, self.got = [each.value for each in self.got], []
        return found
