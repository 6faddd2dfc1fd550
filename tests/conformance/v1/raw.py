"""A peer of AMQP 1.0 that can send any octets and expects exactly what it says.

    peer = connect().open().begin()
    peer.attach_sender("l", "/queues/q")
    peer.transfer(0, b"hello")
    peer.expect(Disposition, first=0, settled=True)

What arrives and was not expected fails the test, also at its end: `done` sees to it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

from harebell.wire import HEADER_1_0, HEADER_1_0_SASL
from harebell.wire.v1 import composites as c
from harebell.wire.v1.described_list import DescribedList
from harebell.wire.v1.frames import AMQP, EMPTY, HEAD, SASL, encode_frame
from harebell.wire.v1.performatives import decode_performative
from harebell.wire.v1.sections import data_section
from tests.conformance.arriving import ArrivingPeer, unique
from tests.conformance.sites import Site, Wire

_QUIET_SECONDS = 0.05

V = TypeVar("V", bound=DescribedList)


@dataclass(frozen=True, slots=True)
class Arrived:
    """What came: a performative with its payload, or None for an empty frame."""

    channel: int
    value: Any
    payload: bytes = b""


class Peer1(ArrivingPeer[Arrived]):
    """One connection to the broker under test.

    Attributes:
        sizes: of the frames that came.
        expected_empty: whether empty frames may come at any time.
    """

    def __init__(self, site: Site, wire: Wire) -> None:
        super().__init__(site, wire)
        self.sizes: list[int] = []
        self.deliveries = 0
        self.expected_empty = False
        self._headers = 0

    # --- sending --------------------------------------------------------------------------------

    def send(self, *values: DescribedList, channel: int = 0, kind: int = AMQP) -> Peer1:
        """Performatives without payload, in one write."""
        return self.send_bytes(*(encode_frame(each.encoded(), channel, kind) for each in values))

    def transfer(
        self,
        handle: int,
        body: bytes,
        *,
        sections: bytes = b"",
        channel: int = 0,
        settled: bool | None = None,
        **fields: Any,
    ) -> int:
        """A whole message with a data section; returns its delivery-id."""
        payload = sections + data_section(body)
        return self.transfer_payload(handle, payload, channel=channel, settled=settled, **fields)

    def transfer_payload(
        self, handle: int, payload: bytes, *, channel: int = 0, **fields: Any
    ) -> int:
        """A transfer with that payload; returns its delivery-id."""
        number = self.deliveries
        given: dict[str, Any] = {"delivery_id": number, "message_format": 0}
        given["delivery_tag"] = number.to_bytes(4)
        performative = c.Transfer(handle=handle, **(given | fields))
        self.send_bytes(encode_frame(performative.encoded() + payload, channel))
        if not performative.more and performative.delivery_id is not None:
            self.deliveries += 1
        return number

    # --- expecting ------------------------------------------------------------------------------

    def _read_frames(self) -> None:
        while not self._headers and len(self.data) >= HEAD:
            size = int.from_bytes(self.data[:4])
            if len(self.data) < size:
                return
            frame = bytes(self.data[:size])
            del self.data[:size]
            self.sizes.append(size)
            body = frame[frame[4] * 4 :]
            channel = int.from_bytes(frame[6:8])
            if not body:
                if not self.expected_empty:
                    self._queue.append(Arrived(channel, None))
                continue
            value, end = decode_performative(body)
            self._queue.append(Arrived(channel, value, body[end:]))

    def expect(self, kind: type[V], channel: int = 0, **fields: Any) -> V:
        """This performative, on this channel, with these fields."""
        value: V = self._expect(kind, channel, fields).value
        return value

    def expect_transfer(self, channel: int = 0, **fields: Any) -> Arrived:
        """A transfer with these fields."""
        return self._expect(c.Transfer, channel, fields)

    def expect_error(self, kind: type[V], condition: str, *words: str, channel: int = 0) -> c.Error:
        """A detach, an end or a close with this error, whose description has these words."""
        found = self.expect(kind, channel)
        error: c.Error = found.error  # type: ignore[attr-defined]
        assert isinstance(error, c.Error), found
        assert error.condition == condition, error
        for word in words:
            assert word in (error.description or ""), error
        return error

    def expect_close(self, condition: str, *words: str) -> None:
        """A close with this error, which is answered, and the end."""
        self.expect_error(c.Close, condition, *words)
        self.opened = False
        self.send(c.Close())
        self.expect_end()

    def quiet(self, channel: int = 0) -> None:
        """Nothing is under way: a flow with echo is answered with nothing before the answer."""
        self.send(c.Flow(None, 2048, 0, 2048, echo=True), channel=channel)
        self.expect(c.Flow, channel, handle=None)

    # --- beginning and end ----------------------------------------------------------------------

    def greet(self) -> c.SaslMechanisms:
        """Ask for the SASL layer; take the echo and the mechanisms."""
        self.send_bytes(HEADER_1_0_SASL)
        self.expect_header(HEADER_1_0_SASL)
        return self.expect(c.SaslMechanisms)

    def login(self, user: str = "guest", password: str = "guest") -> Peer1:
        """Log in with PLAIN, and begin the frames of AMQP."""
        self.greet()
        response = f"\0{user}\0{password}".encode()
        self.send(c.SaslInit("PLAIN", response), kind=SASL)
        self.expect(c.SaslOutcome, code=0)
        self.send_bytes(HEADER_1_0)
        self.expect_header(HEADER_1_0)
        return self

    def open(self, vhost: str = "/", user: str = "guest", **fields: Any) -> Peer1:
        """Everything up to the open of the broker, which `answer` has."""
        self.login(user, fields.pop("password", "guest"))
        container = fields.pop("container", None) or unique("container")
        self.send(c.Open(container, f"vhost:{vhost}", **fields))
        self.answer = self.expect(c.Open)
        self.opened = True
        return self

    def begin(self, channel: int = 0, window: int = 2048, **fields: Any) -> Peer1:
        """A session on a channel; `session` has the answer."""
        self.send(c.Begin(None, 0, window, 2048, **fields), channel=channel)
        self.session = self.expect(c.Begin, channel, remote_channel=channel)
        return self

    def attach_sender(
        self, address: str | None, handle: int = 0, channel: int = 0, **fields: Any
    ) -> c.Attach:
        """A link to publish on; its first credit is taken, too."""
        asked = c.Attach(
            fields.pop("name", unique("sender")),
            handle,
            False,
            source=fields.pop("source", c.Source()),
            target=fields.pop("target", c.Target(address)),
            initial_delivery_count=0,
            **fields,
        )
        self.send(asked, channel=channel)
        answer = self.expect(c.Attach, channel, name=asked.name, handle=handle, role=True)
        self.credit = self.expect(c.Flow, channel, handle=handle)
        return answer

    def attach_receiver(
        self, address: str | None, handle: int = 1, channel: int = 0, credit: int = 0, **fields: Any
    ) -> c.Attach:
        """A link to consume on, and its first credit."""
        asked = c.Attach(
            fields.pop("name", unique("receiver")),
            handle,
            True,
            source=fields.pop("source", c.Source(address)),
            target=fields.pop("target", c.Target()),
            **fields,
        )
        self.send(asked, channel=channel)
        answer = self.expect(c.Attach, channel, name=asked.name, handle=handle, role=False)
        if credit:
            self.give(handle, credit, channel=channel)
        return answer

    def give(self, handle: int, credit: int, channel: int = 0, **fields: Any) -> Peer1:
        """Give a link of the broker credit."""
        given = {"delivery_count": 0} | fields
        # What has arrived is not counted here: the window is large enough for every test.
        flow = c.Flow(None, 1 << 20, 0, 2048, handle, link_credit=credit, **given)
        return self.send(flow, channel=channel)

    def expect_refused(
        self, asked: c.Attach, condition: str, *words: str, channel: int = 0
    ) -> c.Error:
        """An attach that is answered without the terminus of the broker, then detached."""
        self.send(asked, channel=channel)
        answer = self.expect(c.Attach, channel, name=asked.name, handle=asked.handle)
        assert (answer.source if asked.role else answer.target) is None, answer
        error = self.expect_error(c.Detach, condition, *words, channel=channel)
        self.send(c.Detach(asked.handle, True), channel=channel)
        return error

    def close(self) -> None:
        """Close the connection in good order."""
        self.opened = False
        self.send(c.Close())
        self.expect(c.Close, error=None)

    def keep_alive(self) -> Peer1:
        """An empty frame."""
        return self.send_bytes(EMPTY)

    def drop(self) -> None:
        """Let go of the connection without a close."""
        self.opened = False
        self.ended = True
        self.wire.drop()

    def done(self) -> None:
        """Check at the end of a test that nothing came that it did not expect."""
        rest = None if self.ended and not self.data else self.maybe(_QUIET_SECONDS)
        assert rest is None, rest
        if self.opened and not self.ended:
            self.close()
        self.wire.drop()
