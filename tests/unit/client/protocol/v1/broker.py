"""A broker of AMQP 1.0 that answers as a test says, and keeps what the client has sent."""

from __future__ import annotations

from typing import Any

from harebell.client.protocol.v1.core import CoreConnection1
from harebell.client.protocol.v1.session import CoreSession1
from harebell.client.url import URL
from harebell.wire.v1 import composites as c
from harebell.wire.v1.decoding import decode
from harebell.wire.v1.frames import SASL, encode_frame
from harebell.wire.v1.performatives import decode_performative, encode_composite
from harebell.wire.v1.sections import data_section, encode_message, value_section

SASL_HEADER = b"AMQP\x03\x01\x00\x00"
AMQP_HEADER = b"AMQP\x00\x01\x00\x00"
PLAIN = encode_frame(encode_composite(c.SaslMechanisms(("PLAIN",))), 0, SASL)
LET_IN = encode_frame(encode_composite(c.SaslOutcome(code=0)), 0, SASL)
OPEN = c.Open(container_id="b", max_frame_size=4096, channel_max=99, idle_time_out=30_000)
NEW = URL(version="1-0", connection_timeout=10.0)


def octets(*said: Any, channel: int = 0, payload: bytes = b"") -> bytes:
    """Performatives as a broker sends them; the payload follows each."""
    return b"".join(encode_frame(encode_composite(each) + payload, channel) for each in said)


class Broker:
    """The other side of a client's connection.

    Args:
        url: of the client.
        opened: the answer to the client's open.
        credit: what each link of the client gets for its messages.

    Attributes:
        core: the client's connection.
        heard: what the client has sent and no test has taken: performative and payload.
        refuses: the error for links with this address; None is that of the coordinator.
        window: how many frames with transfers it takes.
        drops_filters: whether no filter is in force.
    """

    def __init__(self, url: URL = NEW, opened: c.Open = OPEN, credit: int = 100) -> None:
        self.core = CoreConnection1(url, 0.0, container="us")
        self.heard: list[tuple[Any, bytes]] = []
        self.refuses: dict[Any, c.Error] = {}
        self.credit = credit
        self.window = 1000
        self.drops_filters = False
        self._data = b""
        self._opened = opened
        self._ended: set[Any] = set()
        self.core.receive(SASL_HEADER + PLAIN + LET_IN + AMQP_HEADER + octets(opened), 0.0)
        self.settle()

    def say(self, *said: Any, payload: bytes = b"") -> None:
        """Send performatives on the first channel, after reading what the client has sent."""
        self.settle()
        for each in said:
            # The client answers these; nothing answers that.
            if isinstance(each, c.Detach | c.End | c.Close):
                self._ended.add(each.handle - 10 if isinstance(each, c.Detach) else type(each))
        self.core.receive(octets(*said, payload=payload), 0.0)
        self.settle()

    def settle(self) -> None:
        """Read what the client has sent, and answer what any broker answers."""
        while data := self.core.take_output():
            self._data += data
            while self._next():
                continue

    def _next(self) -> bool:
        data = self._data
        if data[:4] == b"AMQP":
            self._data = data[8:]
            return True
        size = int.from_bytes(data[:4])
        if len(data) < 8 or len(data) < size:
            return False
        self._data, frame = data[size:], data[8:size]
        if data[5] == SASL or not frame:
            return True
        performative, end = decode_performative(frame)
        self.heard.append((performative, frame[end:]))
        answer = _ANSWERS.get(type(performative))
        if answer is not None:
            answer(self, performative)
        return True

    def _begin(self, begin: c.Begin) -> None:
        self.core.receive(
            octets(
                c.Begin(
                    remote_channel=0,
                    next_outgoing_id=0,
                    incoming_window=self.window,
                    outgoing_window=1000,
                )
            ),
            0.0,
        )

    def _attach(self, attach: c.Attach) -> None:
        terminus = attach.source if attach.role else attach.target
        address = getattr(terminus, "address", None)
        answer = c.Attach(
            name=attach.name,
            handle=attach.handle + 10,
            role=not attach.role,
            source=attach.source,
            target=attach.target,
            initial_delivery_count=0 if attach.role else None,
        )
        if self.drops_filters:
            answer.source = c.Source(address=address)
        error = self.refuses.get(address)
        if error is not None:
            answer.source = answer.target = None
            self._ended.add(attach.handle)
            detach = c.Detach(handle=answer.handle, closed=True, error=error)
            self.core.receive(octets(answer, detach), 0.0)
            return
        self.core.receive(octets(answer), 0.0)
        if not attach.role and self.credit:
            self.core.receive(octets(self.flow(answer.handle, self.credit)), 0.0)

    def flow(self, handle: int, credit: int, count: int = 0, taken: int = 0) -> c.Flow:
        """A flow for a link of the client.

        Args:
            handle: ours.
            credit: for how many messages.
            count: how many came over the link.
            taken: how many frames came over the session.
        """
        return c.Flow(
            next_incoming_id=taken,
            incoming_window=self.window,
            next_outgoing_id=0,
            outgoing_window=1000,
            handle=handle,
            delivery_count=count,
            link_credit=credit,
        )

    def _detach(self, detach: c.Detach) -> None:
        if detach.handle in self._ended:
            self._ended.discard(detach.handle)
        else:
            self.core.receive(octets(c.Detach(handle=detach.handle + 10, closed=True)), 0.0)

    def _end(self, end: c.End) -> None:
        if c.End not in self._ended:
            self.core.receive(octets(c.End()), 0.0)

    def _close(self, close: c.Close) -> None:
        if c.Close not in self._ended:
            self.core.receive(octets(c.Close()), 0.0)

    # --- what tests ask for ---------------------------------------------------------------------

    def session(self, **options: Any) -> CoreSession1:
        """A session that the broker has begun."""
        call = self.core.open_channel(**options)
        self.settle()
        session: CoreSession1 = call.value()
        self.heard.clear()
        return session

    def taken(self, kind: type) -> list[Any]:
        """What of one kind the client has sent since the last time."""
        self.settle()
        found = [each for each, _ in self.heard if isinstance(each, kind)]
        self.heard = [pair for pair in self.heard if not isinstance(pair[0], kind)]
        return found

    def messages(self) -> list[tuple[c.Transfer, list[Any]]]:
        """The transfers of whole messages since the last time, with their decoded sections."""
        self.settle()
        found = []
        for performative, payload in self.heard:
            if isinstance(performative, c.Transfer):
                found.append((performative, sections(payload)))
        self.taken(c.Transfer)
        return found

    def deliver(
        self, handle: int, number: int, body: bytes = b"x", settled: bool = False, **more: Any
    ) -> None:
        """Send a message over a link; its handle is ours."""
        header = c.Header(first_acquirer=more.pop("first", True))
        annotations = {"x-exchange": "", "x-routing-key": "q"}
        payload = encode_message(data_section(body), header, annotations, **more)
        tag = number.to_bytes(4)
        transfer = c.Transfer(handle=handle, delivery_id=number, delivery_tag=tag, settled=settled)
        self.say(transfer, payload=payload)

    def reply(self, handle: int, number: int, request: list[Any], status: str, body: Any) -> None:
        """Answer a request to the management node."""
        properties = c.Properties(correlation_id=request[0].value[0], subject=status)
        payload = encode_message(value_section(body), properties=properties)
        self.say(
            c.Transfer(handle=handle, delivery_id=number, delivery_tag=b"m", settled=True),
            payload=payload,
        )


def sections(payload: bytes) -> list[Any]:
    """The sections of a message, as described values."""
    found, at = [], 0
    while at < len(payload):
        section, at = decode(payload, at)
        found.append(section)
    return found


_ANSWERS: dict[type, Any] = {
    c.Begin: Broker._begin,
    c.Attach: Broker._attach,
    c.Detach: Broker._detach,
    c.End: Broker._end,
    c.Close: Broker._close,
}
