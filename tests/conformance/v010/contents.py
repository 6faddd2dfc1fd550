"""A session of AMQP 0-10 that stages files and sends packets, and says what it sees.

desk = Desk(peer)
desk.stage("id", b"the file", FileProperties(filename="x"))
desk.do(c.FilePublish("", "q", identifier="id"))
desk.take_file().body == b"the file"
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypeVar

from harebell.wire.v010 import commands as c
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Command
from harebell.wire.v010.structs import FileProperties, StreamProperties
from tests.conformance.arriving import WAIT_SECONDS
from tests.conformance.sites import MemorySite
from tests.conformance.v010.raw import BODY, COMMAND, HEADER, Arrived, assembly, frame
from tests.conformance.v010.talk import Talk, begin
from tests.patience import eventually

K = TypeVar("K", bound=Command)


@dataclass(frozen=True, slots=True)
class File:
    """A file that was staged here and delivered.

    Args:
        deliver: the command file.deliver.
        properties: from the header of file.stage.
        body: with what was here before.
        sent: what the broker sent of it.
    """

    deliver: c.FileDeliver
    properties: FileProperties
    body: bytes
    sent: bytes


class Desk(Talk):
    """One session."""

    def content(self, command: Command, header: list[Any], body: bytes = b"") -> None:
        """A command with its content, which is not waited for."""
        self.peer.send_bytes(
            assembly(command, header, body, self.channel, True, self.peer.frame_max)
        )
        self.sent += 1

    def begin_stage(self, header: list[Any], body: bytes) -> None:
        """The frames of a file.stage but the last of its body."""
        raw = b"".join(AMQP_0_10.encode_struct(struct) for struct in header)
        octets = frame(COMMAND, AMQP_0_10.encode(c.FileStage()), self.channel, 0x0B)
        octets += frame(HEADER, raw, self.channel, 0x03)
        limit = self.peer.frame_max - 12
        for at in range(0, len(body), limit):
            octets += frame(BODY, body[at : at + limit], self.channel, 0x06 if at == 0 else 0x04)
        self.peer.send_bytes(octets)

    def wait_complete(self) -> None:
        """Everything that was sent is complete."""
        self._until_complete()

    def pass_time(self) -> None:
        """What waits for its time happens; a broker in memory has no other way to know of it."""
        if isinstance(self.peer.site, MemorySite):
            self.peer.site.pass_time(1.0)

    def await_one(self, kind: type[K]) -> Arrived:
        """The next command of this kind, which has come or will; others wait their turn."""
        for found in self.got:
            if isinstance(found.value, kind) and found.channel == self.channel:
                self.got.remove(found)
                return found
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            found = self.peer.next(kind.NAME)
            if found.channel == self.channel and isinstance(found.value, kind):
                return found
            if found.value.NAME != "session.completed":
                self.got.append(found)
        raise AssertionError(f"no {kind.NAME}: {self.got}")

    def stage(self, identifier: str, body: bytes, properties: FileProperties | None = None) -> int:
        """Stage a file, from where it broke off; returns from where that was."""
        self.do(c.FileOpen(identifier, len(body)))
        start: int = self.await_one(c.FileOpenOk).value.staged_size
        self.content(c.FileStage(), [properties or FileProperties()], body[start:])
        self._until_complete()
        return start

    def publish_file(
        self,
        key: str,
        body: bytes,
        identifier: str = "id",
        properties: FileProperties | None = None,
        **options: Any,
    ) -> None:
        """Stage a file, and publish it."""
        self.stage(identifier, body, properties)
        self.do(c.FilePublish(routing_key=key, identifier=identifier, **options))

    def files(self, queue: str, tag: str = "t", **options: Any) -> None:
        """Start a consumer of files."""
        self.do(c.FileConsume(queue, tag, **options))
        assert self.await_one(c.FileConsumeOk).value.consumer_tag == tag

    def take_file(self, have: bytes = b"") -> File:
        """Let the broker stage a file here, of which we have a part; then it is delivered."""
        opened = self.await_one(c.FileOpen).value
        self.do(c.FileOpenOk(len(have)))
        staged = self.await_one(c.FileStage)
        deliver = self.await_one(c.FileDeliver).value
        assert deliver.identifier == opened.identifier
        body = have + staged.body
        assert len(body) == opened.content_size
        return File(deliver, staged.header[0], body, staged.body)

    def packet(self, key: str, body: bytes, *, wait: bool = True, **properties: Any) -> None:
        """Publish a packet to the default exchange."""
        header = [StreamProperties(**properties)]
        self.content(c.StreamPublish(routing_key=key), header, body)
        if wait:
            self._until_complete()

    def packets(self, queue: str, tag: str = "t", **options: Any) -> None:
        """Start a consumer of packets."""
        self.do(c.StreamConsume(queue, tag, **options))
        assert self.await_one(c.StreamConsumeOk).value.consumer_tag == tag

    def count(self, queue: str) -> int:
        """Ready messages in a queue."""
        found: int = self.ask(c.QueueQuery(queue)).message_count
        return found

    def wait_for_count(self, queue: str, count: int) -> None:
        """The same, once what other connections do is done."""
        assert eventually(lambda: self.count(queue) == count), f"{self.count(queue)} messages"

    def ends(self, code: int, text: str) -> None:
        """What was sent last ends the session."""
        self.peer.expect_exception(code, text, self.sent - 1, self.channel)


def begin_desks(peer: Any, channels: int = 1) -> list[Desk]:
    """An open connection with a session of its own name on each of its channels."""
    desks = [Desk(talk.peer, talk.channel) for talk in begin(peer, channels)]
    for desk in desks:
        desk.got = desks[0].got
    return desks
