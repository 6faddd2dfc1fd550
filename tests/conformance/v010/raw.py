"""A peer of AMQP 0-10 that can send any octets and expects exactly what it says.

    peer = connect().open().attach("s")
    peer.send(QueueDeclare("q"), sync=True)
    peer.expect(SessionCompleted, commands=((0, 0),))

What arrives and was not expected fails the test, also at its end: `done` sees to it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, TypeVar

from harebell.wire import HEADER_0_10
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Command, Composite, Control
from tests.conformance.arriving import WAIT_SECONDS, ArrivingPeer
from tests.conformance.sites import Site, Wire

_QUIET_SECONDS = 0.05
HEAD = 12
CONTROL, COMMAND, HEADER, BODY = range(4)
WHOLE = 15

V = TypeVar("V", bound=Composite)


def frame(
    kind: int, payload: bytes, channel: int = 0, flags: int = WHOLE, track: int | None = None
) -> bytes:
    """One frame."""
    track = (0 if kind == CONTROL else 1) if track is None else track
    size = (len(payload) + HEAD).to_bytes(2)
    return (
        bytes((flags, kind)) + size + bytes((0, track)) + channel.to_bytes(2) + bytes(4) + payload
    )


def octets_of(value: Composite, channel: int, sync: bool = False) -> bytes:
    """A control or a command without content, as it travels."""
    assert isinstance(value, Control | Command)
    return frame(COMMAND if isinstance(value, Command) else CONTROL,
                 AMQP_0_10.encode(value, sync), channel)  # fmt: skip


def assembly(
    command: Command, header: list[Composite], body: bytes, channel: int, sync: bool, limit: int
) -> bytes:
    """A command with its content, the body cut to frames."""
    raw = b"".join(AMQP_0_10.encode_struct(struct) for struct in header)
    out = frame(COMMAND, AMQP_0_10.encode(command, sync), channel, 0x0B)
    out += frame(HEADER, raw, channel, 0x03 if body else 0x07)
    limit -= HEAD
    for at in range(0, len(body), limit):
        flags = 0x04 | (2 if at == 0 else 0) | (1 if at + limit >= len(body) else 0)
        out += frame(BODY, body[at : at + limit], channel, flags)
    return out


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came: a control or a command, with its content."""

    channel: int
    value: Any
    sync: bool = False
    header: tuple[Any, ...] = ()
    body: bytes = b""
    raw: bytes = b""
    segments: tuple[int, ...] = ()


class Peer010(ArrivingPeer[Arrived]):
    """One connection to the broker under test.

    Attributes:
        frames: sizes of the frames that came.
        names: of the sessions that it attached, by channel.
    """

    def __init__(self, site: Site, wire: Wire) -> None:
        super().__init__(site, wire)
        self.frame_max = 65535
        self.greeted = False
        self.names: dict[int, bytes] = {}
        self.frames: list[int] = []
        self._parts: dict[tuple[int, int], dict[int, bytes]] = {}

    # --- sending --------------------------------------------------------------------------------

    def send(self, *values: Composite, channel: int = 1, sync: bool = False) -> Peer010:
        """Controls and commands in one write; those of class connection go to channel 0."""
        return self.send_bytes(
            *(
                octets_of(value, 0 if value.NAME.startswith("connection.") else channel, sync)
                for value in values
            )
        )

    def transfer(
        self,
        destination: str,
        body: bytes,
        *header: Composite,
        channel: int = 1,
        sync: bool = False,
        **modes: int,
    ) -> Peer010:
        """message.transfer with its content, in one write."""
        command = c.MessageTransfer(destination, **modes)
        limit = self.frame_max
        return self.send_bytes(assembly(command, list(header), body, channel, sync, limit))

    # --- expecting ------------------------------------------------------------------------------

    def _read_frames(self) -> None:
        while len(self.data) >= HEAD and self.greeted:
            size = int.from_bytes(self.data[2:4])
            if len(self.data) < size:
                return
            raw = bytes(self.data[:size])
            del self.data[:size]
            self.frames.append(size)
            self._take_frame(raw)

    def _take_frame(self, raw: bytes) -> None:
        flags, kind, track, channel = raw[0], raw[1], raw[5], int.from_bytes(raw[6:8])
        assert track == (0 if kind == CONTROL else 1), raw.hex()
        assert raw[4] == 0, raw.hex()
        parts = self._parts.setdefault((channel, track), {})
        assert bool(flags & 8) == (not parts or list(parts) == [COMMAND] == [kind]), raw.hex()
        parts[kind] = parts.get(kind, b"") + raw[HEAD:]
        if flags & 5 != 5:
            return
        del self._parts[channel, track]
        if kind == CONTROL:
            control = AMQP_0_10.decode_control(parts[CONTROL])
            self._queue.append(Arrived(channel, control, raw=parts[CONTROL]))
            return
        sync, command = AMQP_0_10.decode_command(parts[COMMAND])
        header = tuple(AMQP_0_10.decode_header(parts.get(HEADER, b"")))
        body = parts.get(BODY, b"")
        raw = parts[COMMAND]
        self._queue.append(Arrived(channel, command, sync, header, body, raw, tuple(parts)))

    def expect(self, kind: type[V], channel: int = 1, **fields: Any) -> V:
        """This control or command, on this channel, with these fields."""
        if issubclass(kind, Control) and kind.NAME.startswith("connection."):
            channel = 0
        value: V = self._expect(kind, channel, fields).value
        return value

    def expect_later(self, kind: type[V], channel: int = 1, **fields: Any) -> V:
        """The same, after whatever is told of completions."""
        while True:
            found = self.next(kind.NAME)
            if not isinstance(found.value, k.SessionCompleted):
                self._queue.insert(0, found)
                return self.expect(kind, channel, **fields)

    def expect_transfer(self, body: bytes, channel: int = 1, **fields: Any) -> Arrived:
        """A delivery with this body."""
        found = self._expect(c.MessageTransfer, channel, fields)
        assert found.body == body, found
        return found

    def expect_completed(self, last: int, channel: int = 1) -> None:
        """session.completed for everything up to this command, in whatever steps."""
        while True:
            commands = self.expect(k.SessionCompleted, channel).commands
            if commands and commands[-1][1] == last:
                return

    def expect_exception(
        self, code: int, text: str, command_id: int | None = None, channel: int = 1
    ) -> c.ExecutionException:
        """execution.exception, and the session asked to leave."""
        while True:
            found = self.next("execution.exception")
            if not isinstance(found.value, k.SessionCompleted):
                break
        exception = found.value
        assert isinstance(exception, c.ExecutionException), found
        assert exception.error_code == code, found
        assert text in (exception.description or ""), found
        if command_id is not None:
            assert exception.command_id == command_id, found
        detach = self.expect(k.SessionDetach, channel)
        self.send(k.SessionDetached(detach.name, 0), channel=channel)
        return exception

    def expect_close(self, code: int, text: str) -> None:
        """connection.close, which is answered, and the end."""
        close = self.expect(k.ConnectionClose, reply_code=code)
        assert text in (close.reply_text or ""), close
        self.send(k.ConnectionCloseOk())
        self.expect_end()

    def expect_parting(self) -> None:
        """The broker leaves it to us to end the socket, and follows."""
        assert self.maybe(_QUIET_SECONDS) is None
        assert not self.ended, "the broker ended the connection"
        self.wire.end()
        self.expect_end()

    def quiet(self, channel: int = 1) -> None:
        """Nothing is under way: a flush is answered with nothing before the answer."""
        self.send(k.SessionFlush(expected=True), channel=channel)
        self.expect_later(k.SessionExpected, channel)

    # --- beginning and end ----------------------------------------------------------------------

    def greet(self) -> k.ConnectionStart:
        """Send the protocol header; take the echo and connection.start."""
        self.send_bytes(HEADER_0_10)
        self.expect_header(HEADER_0_10)
        self.greeted = True
        return self.expect(k.ConnectionStart)

    def login(self, user: str = "guest", password: str = "guest") -> k.ConnectionTune:
        """Begin, log in with PLAIN, and take connection.tune."""
        self.greet()
        response = f"\0{user}\0{password}".encode()
        self.send(k.ConnectionStartOk({"product": "raw"}, "PLAIN", response, "en_US"))
        return self.expect(k.ConnectionTune)

    def open(
        self, vhost: str = "/", frame_max: int | None = None, heartbeat: int = 0, **login: str
    ) -> Peer010:
        """Everything up to connection.open-ok."""
        tune = self.login(**login)
        self.frame_max = frame_max or tune.max_frame_size or 65535
        self.send(k.ConnectionTuneOk(0, self.frame_max, heartbeat), k.ConnectionOpen(vhost))
        self.expect(k.ConnectionOpenOk)
        self.opened = True
        return self

    def attach(self, name: str = "s", channel: int = 1, timeout: int | None = None) -> Peer010:
        """A new session on that channel, both sides at command 0."""
        self.send(k.SessionAttach(name.encode()), channel=channel)
        self.expect(k.SessionAttached, channel, name=name.encode())
        self.names[channel] = name.encode()
        self.expect(k.SessionCommandPoint, channel, command_id=0, command_offset=0)
        self.send(k.SessionCommandPoint(0, 0), channel=channel)
        if timeout is not None:
            self.send(k.SessionRequestTimeout(timeout), channel=channel)
            self.expect(k.SessionTimeout, channel, timeout=timeout)
        return self

    def close(self) -> None:
        """Close the connection in good order."""
        self.send(k.ConnectionClose(200))
        self.expect(k.ConnectionCloseOk)
        self.expect_parting()

    def _leave(self) -> None:
        """Wait until the broker knows: its sessions and what is theirs are free for the next."""
        self.send(k.ConnectionClose(200))
        self.wire.end()
        until = time.monotonic() + WAIT_SECONDS
        while not self.ended and self._more(until):
            pass

    def done(self) -> None:
        """The test is over: nothing may be left."""
        left = [] if self.ended else [self.maybe()]
        if self.opened and not self.ended:
            self._leave()
        self.wire.drop()
        assert left in ([], [None]), f"left over: {left}"
