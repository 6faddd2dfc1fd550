"""Drives the real broker and the reference with the same operations, and compares them.

Every operation goes to the real broker as frames over a connection in memory. What all
connections then read is put into a common form: replies, returns, cancels and closes must equal
what the reference says, confirms must cover the same publishes, and deliveries are judged by
the reference's rules. A close is answered, as a client would.
"""

from __future__ import annotations

from typing import Any

from harebell.wire.v09 import methods as m
from tests.model.judge import judge
from tests.model.line import Line
from tests.model.memory import MemoryBroker
from tests.model.peer import Event, Reader, call, login
from tests.model.reference import Reference

Place = tuple[int, int]
Said = list[tuple[int, Any]]

_FIELDS = {
    m.QueueDeclareOk: ("queue", "message_count", "consumer_count"),
    m.QueuePurgeOk: ("message_count",),
    m.QueueDeleteOk: ("message_count",),
    m.BasicConsumeOk: ("consumer_tag",),
    m.BasicCancelOk: ("consumer_tag",),
    m.BasicCancel: ("consumer_tag",),
    m.ChannelClose: ("reply_code",),
    m.ConnectionClose: ("reply_code",),
    m.BasicReturn: ("reply_code", "exchange", "routing_key"),
    m.BasicGetOk: ("delivery_tag", "redelivered", "exchange", "routing_key", "message_count"),
}
_WITH_BODY = (m.BasicReturn, m.BasicGetOk)


def plain(event: Event) -> tuple[Any, ...]:
    """An event in the form that the reference uses."""
    method = event.method
    values = tuple(getattr(method, name) for name in _FIELDS.get(type(method), ()))
    body = (event.body,) if isinstance(method, _WITH_BODY) else ()
    return (event.channel, method.NAME, *values, *body)


class Link:
    """One connection of the driver."""

    def __init__(self, connection: Line, wants_cancel: bool) -> None:
        self.connection = connection
        self.reader = Reader()
        self.wants_cancel = wants_cancel


class Driver:
    """Both brokers, side by side.

    Attributes:
        real: the broker under test.
        reference: the one it is compared with.
    """

    def __init__(self) -> None:
        self.real = self.make_broker()
        self.reference = Reference()
        self.links: dict[int, Link] = {}
        self.confirmed: dict[Place, int] = {}

    def make_broker(self) -> MemoryBroker:
        """The broker under test."""
        return MemoryBroker()

    def settle(self) -> None:
        """Let what waits for a disk happen."""

    # --- getting there --------------------------------------------------------------------------

    def ensure(self, at: Place) -> None:
        """Have this connection and channel open."""
        number, channel = at
        if number not in self.links:
            wants = number != 2
            connection = self.real.accept()
            link = Link(connection, wants)
            capabilities = ("consumer_cancel_notify",) if wants else ()
            connection.receive(login(capabilities=capabilities), 0.0)
            names = [e.method.NAME for e in link.reader.feed(connection.take_output(0.0))]
            assert names == ["connection.start", "connection.tune", "connection.open-ok"]
            self.links[number] = link
            self.reference.open_connection(number, wants)
        if at not in self.reference.channels:
            link = self.links[number]
            link.connection.receive(call(channel, m.ChannelOpen()), 0.0)
            events = link.reader.feed(link.connection.take_output(0.0))
            assert [plain(e) for e in events] == [(channel, "channel.open-ok")]
            self.reference.open_channel(number, channel)
            self.confirmed[at] = 0

    def run(self, at: Place, octets: bytes, operation: str, *arguments: Any) -> list[Event]:
        """One operation on both; returns the events of its own connection."""
        link = self.links[at[0]]
        link.connection.receive(octets, 0.0)
        expected = self.reference.do(at, operation, *arguments)
        return self.compare(at, expected)

    def vanish(self, number: int) -> None:
        """The peer goes without a word."""
        link = self.links.pop(number)
        link.connection.eof()
        self.reference.said = []
        self.reference.drop_connection(number)
        self.compare((number, 0), self.reference.said)

    # --- comparing ------------------------------------------------------------------------------

    def compare(self, at: Place, expected: Said) -> list[Event]:
        """Read every connection and compare with what was expected."""
        self.settle()
        own: list[Event] = []
        deliveries: Said = []
        for number, link in list(self.links.items()):
            events = link.reader.feed(link.connection.take_output(0.0))
            assert not link.reader.partial, "half a frame or content was written"
            if number == at[0]:
                own = events
            deliveries += self._split(number, events, expected)
        judge(self.reference, deliveries)
        assert not self.real.internal_errors(), self.real.internal_errors()
        return own

    def _split(self, number: int, events: list[Event], expected: Said) -> Said:
        deliveries: Said = []
        seen: list[tuple[Any, ...]] = []
        for event in events:
            method = event.method
            if isinstance(method, m.BasicDeliver):
                deliveries.append((number, self._delivery(number, event)))
            elif isinstance(method, m.BasicAck):
                self._confirm((number, event.channel), method)
            else:
                seen.append(plain(event))
        wanted = [event for to, event in expected if to == number and event[1] != "confirmed"]
        self._same(seen, wanted)
        for to, event in expected:
            if to == number and event[1] == "confirmed" and self._open(number, event[0]):
                assert self.confirmed[number, event[0]] == event[2], "a publish is not confirmed"
        self._answer_closes(number, seen)
        return deliveries

    def _open(self, number: int, channel: int) -> bool:
        return (number, channel) in self.reference.channels

    @staticmethod
    def _delivery(number: int, event: Event) -> tuple[Any, ...]:
        d = event.method
        assert isinstance(d, m.BasicDeliver)
        place = (event.channel, d.consumer_tag, d.delivery_tag, d.redelivered)
        return (*place, d.exchange, d.routing_key, event.body)

    def _confirm(self, at: Place, ack: m.BasicAck) -> None:
        assert at in self.reference.channels, f"a confirm on channel {at}, which is not open"
        last = self.confirmed[at]
        assert ack.delivery_tag > last, f"{ack.delivery_tag} is confirmed twice"
        assert ack.multiple or ack.delivery_tag == last + 1, "a confirm passes over another"
        self.confirmed[at] = ack.delivery_tag

    @staticmethod
    def _same(seen: list[tuple[Any, ...]], wanted: list[tuple[Any, ...]]) -> None:
        """Equal in order, but for cancels: when several consumers go their order is free."""
        cancel = "basic.cancel"
        rest = [event for event in seen if event[1] != cancel]
        assert rest == [event for event in wanted if event[1] != cancel]
        assert sorted(e for e in seen if e[1] == cancel) == sorted(
            e for e in wanted if e[1] == cancel
        )

    def _answer_closes(self, number: int, seen: list[tuple[Any, ...]]) -> None:
        link = self.links[number]
        for event in seen:
            if event[1] == "channel.close":
                link.connection.receive(call(event[0], m.ChannelCloseOk()), 0.0)
            elif event[1] == "connection.close":
                link.connection.receive(call(0, m.ConnectionCloseOk()), 0.0)
                assert link.connection.closing
                link.connection.eof()
                del self.links[number]

    # --- the end --------------------------------------------------------------------------------

    def counts(self) -> dict[str, tuple[int, int]]:
        """Ready messages and consumers of every queue, as the real broker has them."""
        queues = self.real.vhost.queues
        return {name: (q.ready_count(), len(q.consumers)) for name, q in queues.items()}

    def check_state(self) -> None:
        """Both have the same exchanges, queues, bindings and counts."""
        reference, vhost = self.reference, self.real.vhost
        # What the broker publishes itself is not the reference's business.
        declared = {name for name in vhost.exchanges if not name.startswith("amq.rabbitmq.")}
        assert declared == set(reference.exchanges)
        wanted = {n: (len(q.ready), len(q.consumers)) for n, q in reference.queues.items()}
        assert self.counts() == wanted
        assert sum(1 for _ in vhost.bindings()) == len(reference.bindings)

    def finish(self) -> None:
        """Everybody leaves and every queue is deleted: nothing may be left."""
        for number in list(self.links):
            self.vanish(number)
        self.ensure((9, 1))
        for name in list(self.reference.queues):
            delete = call(1, m.QueueDelete(queue=name))
            self.run((9, 1), delete, "delete_queue", name, False, False)
        self.vanish(9)
        assert self.real.gauge.used == 0, f"{self.real.gauge.used} octets are still counted"
        assert not self.real.registry.connections
