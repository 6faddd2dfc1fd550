"""The raw client of `swift.py` in AMQP 1.0: sessions and links that are written by hand.

It splits some messages into two transfers, and takes frames of any size. Like `swift.Link` it is
never surprised when the broker dies: `alive` becomes false.
"""

from __future__ import annotations

import itertools
import select
import socket
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from harebell.wire import HEADER_1_0, HEADER_1_0_SASL
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import HEAD, SASL, encode_frame
from harebell.wire.v1.performatives import decode_performative
from harebell.wire.v1.sections import Sections, data_section, encode_message, split
from tests.patience import SECONDS

_READ = 1 << 18
_WIDE = 1 << 30
BEGIN = c.Begin(None, 0, _WIDE, _WIDE)
_ENDS = (c.Detach, c.End, c.Close)
_CONTAINERS = itertools.count()
_FORCED = "amqp:connection:forced"


class Delivery1(NamedTuple):
    """What came to a link.

    Args:
        channel: of the session.
        handle: of the link.
        number: the delivery-id.
        redelivered: whether it may have been delivered before.
        offset: the annotation `x-stream-offset`; -1 without one.
        body: the content of its data section.
    """

    channel: int
    handle: int
    number: int
    redelivered: bool
    offset: int
    body: bytes


class Session1:
    """What both sides of a session count.

    Attributes:
        deliveries: how many were sent; the next one has this delivery-id.
        transfers: how many were sent.
        room: up to how many may be sent.
        came: the next transfer-id of the broker.
    """

    def __init__(self, answer: c.Begin) -> None:
        self.deliveries = self.transfers = 0
        self.room = answer.incoming_window
        self.came = answer.next_outgoing_id


class Core1:
    """A client without a socket; channels and handles are the caller's.

    Attributes:
        on_delivery: called with every delivery.
        on_outcome: called with channel, first and last delivery-id and state, of what was sent.
        on_flow: called with channel and flow of each link.
        performatives: every other performative that came, in order.
        sessions: by channel.
    """

    def __init__(self) -> None:
        self.on_delivery: Callable[[Delivery1], None] = lambda _delivery: None
        self.on_outcome: Callable[[int, int, int, Any], None] = lambda *_: None
        self.on_flow: Callable[[int, c.Flow], None] = lambda *_: None
        self.performatives: list[Any] = []
        self.sessions: dict[int, Session1] = {}
        self._rest = b""
        self._parts: list[bytes] = []
        self._transfer = c.Transfer()
        self._headers = [HEADER_1_0, HEADER_1_0_SASL]

    # --- what is sent ---------------------------------------------------------------------------

    def message(
        self,
        channel: int,
        handle: int,
        payload: bytes,
        *,
        cut: int = 0,
        settled: bool = False,
        state: Any = None,
    ) -> tuple[int, bytes]:
        """A delivery: its number, and its frames, which have to be sent.

        Args:
            channel: of the session.
            handle: of the link.
            payload: the encoded message.
            cut: how many octets of it are in each transfer; 0 for all.
            settled: whether it has no outcome.
            state: as of a transaction.
        """
        session = self.sessions[channel]
        number = session.deliveries
        session.deliveries += 1
        parts = batched(payload, cut) if cut else [payload]
        session.transfers += len(parts)
        transfer = c.Transfer(handle, number, number.to_bytes(8), 0, settled, state=state)
        octets = []
        for at, part in enumerate(parts):
            transfer.more = at + 1 < len(parts)
            octets.append(encode_frame(transfer.encoded() + part, channel))
            transfer = c.Transfer(handle, settled=settled, state=state)
        return number, b"".join(octets)

    def credited(
        self, channel: int, handle: int, count: int, credit: int, *, drain: bool = False
    ) -> bytes:
        """The frame that says how many deliveries may come on a link after so many."""
        session = self.sessions[channel]
        window = (session.came, _WIDE, session.transfers, _WIDE)
        flow = c.Flow(*window, handle, count, credit, drain=drain)
        return encode_frame(flow.encoded(), channel)

    # --- what comes -----------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """Take octets of the broker."""
        self._rest += data
        for channel, body in self._frames():
            performative, end = decode_performative(body)
            self._take(channel, performative, body[end:])

    def _frames(self) -> Iterator[tuple[int, bytes]]:
        data, at = self._rest, 0
        while len(data) - at >= HEAD:
            if data.startswith(b"AMQP", at):
                assert data[at : at + HEAD] == self._headers.pop(), data[at : at + HEAD]
                at += HEAD
                continue
            end = at + int.from_bytes(data[at : at + 4])
            if end > len(data):
                break
            body = data[at + data[at + 4] * 4 : end]
            if body:
                yield int.from_bytes(data[at + 6 : at + 8]), body
            at = end
        self._rest = data[at:]

    def _take(self, channel: int, found: Any, payload: bytes) -> None:
        if isinstance(found, c.Transfer):
            self.sessions[channel].came += 1
            if not self._parts:
                self._transfer = found
            self._parts.append(payload)
            if not found.more:
                payload = b"".join(self._parts)
                self._parts = []
                assert not found.aborted, found
                self._deliver(channel, payload)
        elif isinstance(found, c.Disposition):
            if found.role:
                last = found.first if found.last is None else found.last
                assert found.settled, found
                self.on_outcome(channel, found.first, last, found.state)
        elif isinstance(found, c.Flow):
            session = self.sessions[channel]
            if found.next_incoming_id is not None:
                session.room = found.next_incoming_id + found.incoming_window
            if found.handle is not None:
                self.on_flow(channel, found)
        else:
            if isinstance(found, c.Begin):
                self.sessions[channel] = Session1(found)
            self.performatives.append(found)

    def _deliver(self, channel: int, payload: bytes) -> None:
        raw, body, _ = split(payload)
        sections = Sections(raw)
        transfer = self._transfer
        assert transfer.delivery_id is not None, transfer
        offset = sections.message_annotations().get("x-stream-offset", -1)
        again = not sections.header().first_acquirer
        self.on_delivery(
            Delivery1(channel, transfer.handle, transfer.delivery_id, again, int(offset), body)
        )


class Link1(Core1):
    """One connection, logged in as guest.

    Args:
        port: where the broker listens.
        frame_max: the largest frame that the broker may send.

    Raises:
        ConnectionError: the broker is not there, or goes while the connection opens.

    Attributes:
        alive: whether the broker has not closed the connection.
        broker: the `cluster_name` that the broker has given.
    """

    def __init__(self, port: int, frame_max: int = 131_072) -> None:
        super().__init__()
        self.alive = True
        self.socket = socket.create_connection(("127.0.0.1", port), SECONDS)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        init = c.SaslInit("PLAIN", b"\0guest\0guest").encoded()
        self.send(HEADER_1_0_SASL + encode_frame(init, kind=SASL))
        assert self.until(c.SaslOutcome).code == 0
        # A container of the same name would take the links of an older one.
        opened = c.Open(f"load-{next(_CONTAINERS)}", "vhost:/", frame_max)
        self.send(HEADER_1_0 + encode_frame(opened.encoded()))
        properties = self.until(c.Open).properties or {}
        self.broker = str(properties.get("cluster_name", ""))

    def begin(self, channel: int) -> Session1:
        """A session; the broker answers on the same channel.

        Raises:
            ConnectionError: the broker goes.
        """
        self.say(BEGIN, channel)
        self.until(c.Begin)
        return self.sessions[channel]

    def attach(self, channel: int, handle: int, source: Any, target: Any) -> c.Attach:
        """A link, by which the broker sends if it has a source with an address.

        Raises:
            ConnectionError: the broker goes.
        """
        receives = source.address is not None
        count = None if receives else 0
        name = f"{channel}-{handle}"
        self.say(
            c.Attach(
                name, handle, receives, source=source, target=target, initial_delivery_count=count
            ),
            channel,
        )
        answer: c.Attach = self.until(c.Attach)
        return answer

    def fileno(self) -> int:
        """The socket's number, for select."""
        return self.socket.fileno()

    def send(self, data: bytes) -> bool:
        """Write everything; returns whether the broker was still there to take it."""
        if self.alive:
            try:
                self.socket.sendall(data)
            except (BrokenPipeError, ConnectionResetError):
                # What the broker wrote before it went can still be read.
                return False
        return self.alive

    def say(self, performative: Any, channel: int = 0) -> bool:
        """Send a performative."""
        return self.send(encode_frame(performative.encoded(), channel))

    def credit(
        self, channel: int, handle: int, count: int, credit: int, *, drain: bool = False
    ) -> bool:
        """Say how many deliveries may come on a link after so many."""
        return self.send(self.credited(channel, handle, count, credit, drain=drain))

    # --- what comes -----------------------------------------------------------------------------

    def until(self, wanted: type[Any]) -> Any:
        """Read until such a performative comes; others before it are dropped.

        Raises:
            ConnectionError: the broker goes before.
            AssertionError: the broker ends link, session or connection.
        """
        while True:
            while self.performatives:
                found = self.performatives.pop(0)
                if isinstance(found, wanted):
                    return found
                self.harmless(found)
            if not self.alive:
                raise ConnectionError("the broker has closed the connection")
            self.read()

    @staticmethod
    def harmless(found: Any) -> None:
        """Raise for an end that nobody asked for.

        Raises:
            ConnectionError: the broker stops.
            AssertionError: it ended a link, the session or the connection for another reason.
        """
        if isinstance(found, c.Close) and found.error and found.error.condition == _FORCED:
            raise ConnectionError(found.error.description)
        assert not isinstance(found, _ENDS), found

    def read(self) -> None:
        """Wait for input and take it."""
        try:
            data = self.socket.recv(_READ)
        except (ConnectionResetError, BrokenPipeError):
            data = b""
        if not data:
            self.alive = False
            return
        self.feed(data)

    def read_if_any(self) -> None:
        """Take input that is there already."""
        while self.alive and select.select([self.socket], [], [], 0)[0]:
            self.read()

    def goodbye(self) -> None:
        """Close as one should, so that the broker knows it when this returns."""
        self.say(c.Close())
        while self.alive and not any(isinstance(each, c.Close) for each in self.performatives):
            self.read()
        # The answer is no end that nobody asked for.
        self.performatives = [each for each in self.performatives if each != c.Close()]
        self.close()

    def close(self) -> None:
        """Go without a word."""
        self.socket.close()
        self.alive = False


def batched(payload: bytes, size: int) -> list[bytes]:
    """A payload in parts of a size."""
    return [payload[at : at + size] for at in range(0, len(payload), size)]


def payload_of(body: bytes, priority: int | None = None, *, durable: bool = True) -> bytes:
    """A message."""
    return encode_message(data_section(body), c.Header(durable=durable, priority=priority))
