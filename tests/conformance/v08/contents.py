"""A peer of 0-8 that stages files, sends packets and blocks, and says frame by frame what it sees.

sender.stage("id", b"the file", FileProperties(filename="x"))
sender.send(FilePublish("", "q", identifier="id"))
found = taker.take_file()
assert found.body == b"the file"
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from msgspec import Struct

from harebell.wire.v09 import methods as m
from harebell.wire.v09.method import Method
from harebell.wire.v09.methods_older import (
    FileConsume,
    FileDeliver,
    FileOpen,
    FileOpenOk,
    FilePublish,
    FileStage,
    StreamDeliver,
    StreamPublish,
)
from harebell.wire.v09.property_list import (
    FILE,
    OTHER_LISTS,
    STREAM,
    FileProperties,
    PropertyList,
    StreamProperties,
)
from tests.conformance.frames import BODY, HEADER, METHOD, Frame, frame
from tests.conformance.sites import MemorySite
from tests.conformance.v08.peer import Peer8
from tests.patience import eventually

MEMORY_TURNS = 50
"""How often a tenth of a second passes for a broker in memory, before nothing comes."""


@dataclass(frozen=True, slots=True)
class Whole:
    """A method with its content.

    Args:
        method: the method.
        properties: decoded; as they came for class basic.
        body: the whole body.
    """

    method: Any
    properties: Any
    body: bytes


class Peer08(Peer8):
    """One connection to the broker under test."""

    waits = True
    """Time passes for a broker in memory, too, where something is waited for."""

    # --- sending --------------------------------------------------------------------------------

    def send_content(
        self,
        method: Method,
        listed: PropertyList,
        properties: Struct | bytes,
        body: bytes,
        channel: int = 1,
        size: int = -1,
    ) -> Peer08:
        """A method with its content; `size` is what the header says, if that shall be a lie."""
        raw = properties if isinstance(properties, bytes) else listed.encode(properties)
        octets = frame(METHOD, channel, self.SPEC.encode(method))
        octets += frame(HEADER, channel, listed.header(len(body) if size < 0 else size, raw))
        limit = self.frame_max - 8
        for at in range(0, len(body), limit):
            octets += frame(BODY, channel, body[at : at + limit])
        self.wire.write(octets)
        return self

    def send_header(self, payload: bytes, channel: int = 1) -> Peer08:
        """A content header of any octets."""
        self.wire.write(frame(HEADER, channel, payload))
        return self

    def packet(
        self, key: str, body: bytes, exchange: str = "", channel: int = 1, *, flags: int = 0,
        **properties: Any,
    ) -> Peer08:  # fmt: skip
        """Publish a packet."""
        method = StreamPublish(exchange, key, bool(flags & 1), bool(flags & 2))
        return self.send_content(method, STREAM, StreamProperties(**properties), body, channel)

    def stage(
        self,
        identifier: str,
        body: bytes,
        properties: FileProperties | None = None,
        channel: int = 1,
    ) -> int:
        """Stage a file, from where it broke off; returns from where that was."""
        self.send(FileOpen(identifier, len(body)), channel=channel)
        start = self.expect(FileOpenOk, channel).staged_size
        listed = properties or FileProperties()
        self.send_content(FileStage(), FILE, listed, body[start:], channel)
        return start

    def publish_file(
        self, key: str, body: bytes, identifier: str = "id", exchange: str = "",
        properties: FileProperties | None = None, channel: int = 1, *, flags: int = 0,
    ) -> None:  # fmt: skip
        """Stage a file and publish it."""
        self.stage(identifier, body, properties, channel)
        method = FilePublish(exchange, key, bool(flags & 1), bool(flags & 2), identifier)
        self.send(method, channel=channel)

    # --- expecting ------------------------------------------------------------------------------

    def _frame(self, seconds: float) -> Frame | None:
        self._turns_left = MEMORY_TURNS
        return super()._frame(seconds)

    def goes_on(self, until: float) -> bool:
        """Whether something may still come; the time of a broker in memory is moved on."""
        if not isinstance(self.site, MemorySite):
            return time.monotonic() < until
        self._turns_left -= 1
        self.site.pass_time(0.1)
        return self._turns_left >= 0

    def next_method(self) -> tuple[int, Any]:
        """The next frame, which is a method: its channel and the method."""
        found = self.next_frame("a method")
        assert found.kind == METHOD, f"expected a method, got {found}"
        return found.channel, self.SPEC.decode(found.payload)

    def expect_whole(self, kind: type[Method], channel: int = 1, **fields: Any) -> Whole:
        """This method with its content."""
        method = self.expect(kind, channel, **fields)
        header = self.next_frame("a content header")
        assert (header.kind, header.channel) == (HEADER, channel), header
        class_id = self.SPEC.spec_of(method).class_id
        assert int.from_bytes(header.payload[:2]) == class_id
        size = int.from_bytes(header.payload[4:12])
        body = b""
        while len(body) < size:
            found = self.next_frame("a content body")
            assert (found.kind, found.channel) == (BODY, channel), found
            assert len(found.payload) + 8 <= self.frame_max
            body += found.payload
        assert len(body) == size, "the body is longer than its header says"
        listed = OTHER_LISTS.get(class_id)
        raw = header.payload[12:]
        return Whole(method, raw if listed is None else listed.decode(raw), body)

    def take_file(self, channel: int = 1, have: bytes = b"", **fields: Any) -> Whole:
        """Let the broker stage a file here, of which we have a part; then comes file.deliver."""
        opened = self.expect(FileOpen, channel)
        self.send(FileOpenOk(len(have)), channel=channel)
        staged = self.expect_whole(FileStage, channel)
        delivered = self.expect(FileDeliver, channel, identifier=opened.identifier, **fields)
        body = have + staged.body
        assert len(body) == opened.content_size
        return Whole(delivered, staged.properties, body)

    def take_packet(self, body: bytes | None = None, channel: int = 1, **fields: Any) -> Whole:
        """A packet comes."""
        found = self.expect_whole(StreamDeliver, channel, **fields)
        assert body is None or found.body == body, found
        return found

    def refused(self, code: int, text: str, channel: int = 1) -> m.ChannelClose:
        """The channel is closed for this reason; then we agree."""
        close = self.expect(m.ChannelClose, channel)
        assert close.reply_code == code, close
        assert text in close.reply_text, close
        self.send(m.ChannelCloseOk(), channel=channel)
        return close

    def cut_off(self, code: int, text: str) -> m.ConnectionClose:
        """The connection is closed for this reason; then we agree."""
        close = self.expect(m.ConnectionClose)
        assert close.reply_code == code, close
        assert text in close.reply_text, close
        self.opened = False
        self.send(m.ConnectionCloseOk())
        self.expect_closed()
        return close

    # --- longer moves ---------------------------------------------------------------------------

    def wait_for_count(self, queue: str, count: int) -> None:
        """Ready messages in a queue, once what other connections do is done."""
        assert eventually(lambda: self.count(queue) == count), f"{self.count(queue)} messages"

    def files(self, queue: str, channel: int = 1, **options: Any) -> str:
        """Start a consumer of files."""
        tag: str = self.ask(FileConsume(queue=queue, **options), channel).consumer_tag
        return tag

    def lose(self) -> None:
        """The connection breaks."""
        self.opened = False
        self.wire.drop()


Connect08 = Callable[[], Peer08]
