"""A client of transitional 0-10, frame by frame, as the one of 2007 was: it counts commands.

    peer.send(ExchangeDeclare("e"))                 a command without a reply
    peer.settle()                                   flush, and wait until it is complete
    peer.run(QueueBind("q", "e"))                   both
    peer.ask(QueueDeclare("q"))                     a command with a reply
    found = peer.expect(MessageTransfer)            a command of the broker's
    peer.complete(peer.received())                  we are done with all up to that one

`peer.sent(1)` is the number of the last command on channel 1, `peer.received(1)` that of the
broker's. What arrives and was not expected fails the test, also at its end.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Self

from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from harebell.wire.v09.amqp_0_10_transitional import AMQP_0_10_TRANSITIONAL as SPEC
from harebell.wire.v09.typed_fields import encode_typed
from tests.conformance import raw
from tests.conformance.frames import METHOD, Frame, frame
from tests.conformance.raw import ids
from tests.conformance.sites import Site, Wire

HEADER_0_10 = b"AMQP\x01\x01\x00\x0a"
HEADER_PREVIEW = b"AMQP\x01\x01\x63\x00"
"""Means transitional 0-10 on every listener."""
CONTROLS = (10, 20, 21, 140)


def is_command(payload: bytes) -> bool:
    """Whether a method is numbered."""
    return int.from_bytes(payload[:2]) not in CONTROLS


class Peer(raw.Peer):
    """One connection, driven frame by frame.

    Methods that send return the number of the last command, and not the peer.
    """

    SPEC = SPEC
    GREETING = HEADER_PREVIEW

    def __init__(self, site: Site, wire: Wire) -> None:
        super().__init__(site, wire)
        self._sent: dict[int, int] = defaultdict(int)
        self._received: dict[int, int] = defaultdict(int)
        self.marks: dict[int, s.ExecutionComplete] = {}

    # --- sending --------------------------------------------------------------------------------

    def payload(self, payload: bytes, channel: int = 1) -> int:
        """A method that is encoded already; returns the number of the last command."""
        if is_command(payload):
            self._sent[channel] += 1
        self.send_bytes(frame(METHOD, channel, payload))
        return self._sent[channel]

    def send(self, method: m.Method, channel: int = 1) -> int:  # type: ignore[override]
        """A method; returns the number of the last command."""
        if method.NAME.startswith("connection."):
            channel = 0
        if isinstance(method, m.ChannelOpen | s.SessionOpen):
            self._sent[channel] = self._received[channel] = 0
        return self.payload(SPEC.encode(method), channel)

    def sent(self, channel: int = 1) -> int:
        """The number of our last command."""
        return self._sent[channel]

    def received(self, channel: int = 1) -> int:
        """The number of the broker's last command."""
        return self._received[channel]

    def publish(self, exchange: str, routing_key: str, *args: Any, **fields: Any) -> int:  # type: ignore[override]
        """basic.publish with its content, in one write; returns its number."""
        super().publish(exchange, routing_key, *args, **fields)
        channel: int = fields.get("channel", 1)
        self._sent[channel] += 1
        return self._sent[channel]

    def complete(self, mark: int, *ranges: tuple[int, int], channel: int = 1) -> None:
        """execution.complete."""
        self.send(s.ExecutionComplete(mark, ranges), channel)

    # --- expecting ------------------------------------------------------------------------------

    def next_frame(self, what: str, seconds: float = raw.WAIT_SECONDS) -> Frame:
        """The next frame, which has to come; commands are counted."""
        found = super().next_frame(what, seconds)
        if found.kind == METHOD and is_command(found.payload):
            self._received[found.channel] += 1
        return found

    def run(self, method: m.Method, channel: int = 1) -> int:
        """A command without a reply, until it is complete; returns its number."""
        number = self.send(method, channel)
        self.settle(channel)
        return number

    def settle(self, channel: int = 1) -> s.ExecutionComplete:
        """Flush, and wait until all that was sent is complete."""
        self.send(s.ExecutionFlush(), channel)
        while True:
            answer = self.expect(s.ExecutionComplete, channel)
            if answer.cumulative_execution_mark == self._sent[channel]:
                assert answer.ranged_execution_set == ()
                return answer

    def expect_channel_close(  # type: ignore[override]
        self, code: int, at: str | tuple[int, int], *words: str, channel: int = 1
    ) -> None:
        """channel.close with this code, failing method and these words; then answer it."""
        close = self.expect(m.ChannelClose, channel, reply_code=code)
        assert (close.class_id, close.method_id) == ids(at, SPEC)
        _check_words(close.reply_text, words)
        self.expect_silence()
        self.send(m.ChannelCloseOk(), channel)

    def expect_session_closed(self, code: int, *words: str, channel: int = 1) -> None:
        """session.closed with this code and these words."""
        closed = self.expect(s.SessionClosed, channel, reply_code=code)
        _check_words(closed.reply_text, words)

    def expect_connection_close(  # type: ignore[override]
        self, code: int, at: str | tuple[int, int] = (0, 0), *words: str
    ) -> None:
        """connection.close with this code, failing method and these words; answer it: the end."""
        close = self.expect(m.ConnectionClose, reply_code=code)
        assert (close.class_id, close.method_id) == ids(at, SPEC)
        _check_words(close.reply_text, words)
        if code != 501:
            self.send(m.ConnectionCloseOk())
        self.expect_closed()

    # --- longer moves ---------------------------------------------------------------------------

    def greet(self, header: bytes = HEADER_PREVIEW) -> m.ConnectionStart:
        """The protocol header, and what the broker answers: a method, no header."""
        self.send_bytes(header)
        return self.expect(m.ConnectionStart)

    def log_in(  # type: ignore[override]
        self,
        user: str = "guest",
        password: str = "guest",
        mechanism: str = "AMQPLAIN",
        properties: Any = None,
    ) -> m.ConnectionTune:
        """From start to tune."""
        response = encode_typed({"LOGIN": user, "PASSWORD": password})[4:]
        if mechanism == "PLAIN":
            response = b"\0" + user.encode() + b"\0" + password.encode()
        self.send(m.ConnectionStartOk(properties or {}, mechanism, response, "en_US"))
        return self.expect(m.ConnectionTune)

    def open(  # type: ignore[override]
        self,
        vhost: str = "/",
        *,
        frame_max: int | None = None,
        channels: tuple[int, ...] = (1,),
        header: bytes = HEADER_PREVIEW,
        **options: Any,
    ) -> Self:
        """The whole beginning, with these channels opened by channel.open."""
        self.greet(header)
        tune = self.log_in(**options)
        self.frame_max = tune.frame_max if frame_max is None else frame_max
        self.send(m.ConnectionTuneOk(tune.channel_max, self.frame_max, tune.heartbeat))
        self.reader.frame_max = self.frame_max
        self.ask(m.ConnectionOpen(virtual_host=vhost))
        self.opened = True
        for number in channels:
            self.ask(m.ChannelOpen(), number)
        return self

    def attach(self, lifetime: int = 0, channel: int = 1) -> s.SessionAttached:
        """session.open."""
        attached: s.SessionAttached = self.ask(s.SessionOpen(lifetime), channel)
        return attached

    def queue(self, name: str = "", channel: int = 1, **options: Any) -> str:
        """Declare a queue and return its name."""
        declared: m.QueueDeclareOk = self.ask(m.QueueDeclare(queue=name, **options), channel)
        return declared.queue

    def get(self, queue: str, *, channel: int = 1, **options: Any) -> raw.Content:
        """basic.get of a message that has to be there."""
        self.send(m.BasicGet(queue=queue, **options), channel)
        return self.expect_content(m.BasicGetOk, channel)

    def drop(self) -> None:
        """The socket is lost; nothing else is looked at."""
        self.wire.drop()
        self.ended = True
        self.opened = False


def _check_words(text: str, words: tuple[str, ...]) -> None:
    for word in words:
        assert word in text, f"{text!r} does not say {word!r}"
