"""Peers of AMQP 1.0 that do not read, that do not listen, or that stop in the middle."""

from __future__ import annotations

import select
import socket
import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v1 import composites as c
from harebell.wire.v1.frames import encode_frame
from harebell.wire.v1.sections import data_section
from harebell.wire.v1.values import Symbol
from tests.model.peer import publish
from tests.patience import eventually
from tests.robustness.raw import (
    MIB,
    RawClient,
    allocated,
    assert_serves,
    open_files,
    resident,
)
from tests.robustness.swift1 import Delivery1, Link1, payload_of
from tests.running import RunningBroker, running_broker, set_watermark

BODY = b"x" * 1_000
_CHANNEL, _HANDLE = 0, 0
_QUIET_SECONDS = 0.3
_SHARING_QUEUES = 200
_DEEP = 100_000


@pytest.fixture(scope="module")
def broker() -> Iterator[RunningBroker]:
    with running_broker() as running:
        # The first connection of a version imports it, and takes memory for that.
        _publisher(running, "/exchanges/amq.fanout").goodbye()
        yield running
        assert "Traceback" not in running.log


def _declare(broker: RunningBroker, name: str, **arguments: Any) -> None:
    with RawClient(broker) as client:
        client.ask(m.QueueDeclare(queue=name, arguments=arguments), m.QueueDeclareOk)


def _depth(broker: RunningBroker, name: str) -> int:
    with RawClient(broker) as client:
        found = client.ask(m.QueueDeclare(queue=name, passive=True), m.QueueDeclareOk).method
        assert isinstance(found, m.QueueDeclareOk)
        return found.message_count


def _link(broker: RunningBroker) -> Link1:
    link = Link1(broker.port)
    link.begin(_CHANNEL)
    return link


def _publisher(
    broker: RunningBroker, address: str, on_flow: Callable[[int, c.Flow], None] | None = None
) -> Link1:
    link = _link(broker)
    link.on_flow = on_flow or link.on_flow
    link.attach(_CHANNEL, _HANDLE, c.Source(), c.Target(address))
    return link


def _reset(link: Link1) -> None:
    link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    link.socket.close()


def _ended(link: Link1) -> Any:
    """The error with which the broker closes the connection."""
    while not any(isinstance(each, c.Close) for each in link.performatives):
        assert link.alive, "the broker went without a close"
        link.read()
    (found,) = [each for each in link.performatives if isinstance(each, c.Close)]
    link.say(c.Close())
    return found.error.condition


# --- back-pressure ------------------------------------------------------------------------------


def test_a_consumer_that_does_not_read_holds_little_and_loses_nothing() -> None:
    count = 30_000
    with running_broker() as broker:
        with RawClient(broker) as client:
            client.ask(m.QueueDeclare(queue="slow"), m.QueueDeclareOk)
            for start in range(0, count, 100):
                numbers = range(start, start + 100)
                client.send(b"".join(publish(1, "", "slow", b"%08d" % n + BODY) for n in numbers))
            client.ask(m.QueueDeclare(queue="slow", passive=True), m.QueueDeclareOk)
        before = allocated(broker)
        link = _link(broker)
        found: list[bytes] = []
        link.on_delivery = lambda delivery: found.append(delivery.body[:8])
        link.attach(_CHANNEL, _HANDLE, c.Source("/queues/slow"), c.Target())
        link.credit(_CHANNEL, _HANDLE, 0, count)
        # The broker has sent what it will send once it serves others.
        for _ in range(20):
            assert_serves(broker)
        grown = allocated(broker) - before
        assert grown < 16 * MIB, f"{grown} octets more for a consumer that does not read"
        while len(found) < count:
            link.read()
        assert found == [b"%08d" % n for n in range(count)]
        link.say(c.Disposition(True, 0, count - 1, True, c.Accepted()))
        link.goodbye()
        assert _depth(broker, "slow") == 0


class _Pusher:
    """Publishes to every queue of a fanout, and listens to windows or does not.

    Args:
        broker: whom to.
        listens: whether it stops at the end of the window.
    """

    def __init__(self, broker: RunningBroker, *, listens: bool) -> None:
        self.accepted = self.sent = self._limit = 0
        self.link = _publisher(broker, "/exchanges/amq.fanout", self._flow)
        self.link.on_outcome = self._outcome
        self._listens = listens
        self._payload = payload_of(BODY, durable=False)

    def _flow(self, channel: int, flow: c.Flow) -> None:
        self._limit = (flow.delivery_count or 0) + (flow.link_credit or 0)

    def _outcome(self, channel: int, first: int, last: int, state: Any) -> None:
        assert isinstance(state, c.Accepted), state
        self.accepted += last - first + 1

    @property
    def closed(self) -> bool:
        """Whether the broker has said that its window is closed."""
        session = self.link.sessions[_CHANNEL]
        return session.transfers >= session.room

    def push(self, until: Callable[[], object], limit: int) -> None:
        """Publish until something is true.

        Raises:
            AssertionError: it does not become true with so many messages.
        """
        link, session = self.link, self.link.sessions[_CHANNEL]
        while not until() and link.alive:
            assert self.sent < limit, "it was never held back"
            if self.sent < self._limit and (not self._listens or session.transfers < session.room):
                self.sent += 1
                link.send(link.message(_CHANNEL, _HANDLE, self._payload)[1])
                if self.sent % 50:
                    continue
            wait = 0.0 if self.sent < self._limit else _QUIET_SECONDS
            if select.select([link], [], [], wait)[0]:
                link.read()


def _fan_out(broker: RunningBroker) -> list[str]:
    names = [f"flood-{number}" for number in range(_SHARING_QUEUES)]
    with RawClient(broker) as client:
        for name in names:
            client.ask(m.QueueDeclare(queue=name), m.QueueDeclareOk)
            client.ask(m.QueueBind(name, "amq.fanout"), m.QueueBindOk)
    return names


def _empty(broker: RunningBroker, names: list[str]) -> None:
    with RawClient(broker) as client:
        for name in names:
            client.ask(m.QueuePurge(queue=name), m.QueuePurgeOk)


def test_a_publisher_that_outruns_everything_has_no_window_until_there_is_room() -> None:
    room = 12 * MIB
    with running_broker() as broker:
        names = _fan_out(broker)
        before = resident(broker)
        set_watermark(broker, before + room)
        pusher = _Pusher(broker, listens=True)
        pusher.push(lambda: pusher.closed, 400_000)
        assert resident(broker) - before < 3 * room
        # Consuming on the same connection goes on.
        link = pusher.link
        found: list[Delivery1] = []
        link.on_delivery = found.append
        link.attach(_CHANNEL, 1, c.Source(f"/queues/{names[0]}"), c.Target())
        link.credit(_CHANNEL, 1, 0, 10)
        while len(found) < 10:
            link.read()
        link.say(c.Disposition(True, found[0].number, found[-1].number, True, c.Accepted()))
        _empty(broker, names)
        while pusher.closed or pusher.accepted < pusher.sent:
            link.read()
        link.goodbye()
        assert_serves(broker)


def test_a_publisher_that_does_not_listen_loses_its_session() -> None:
    with running_broker() as broker:
        names = _fan_out(broker)
        set_watermark(broker, resident(broker) + 12 * MIB)
        pusher = _Pusher(broker, listens=False)
        ends = pusher.link.performatives
        pusher.push(lambda: any(isinstance(each, c.End) for each in ends), 400_000)
        (end,) = [each for each in ends if isinstance(each, c.End)]
        assert end.error.condition == "amqp:session:window-violation"
        _reset(pusher.link)
        _empty(broker, names)
        assert_serves(broker)


# --- what nobody should send --------------------------------------------------------------------


def test_a_frame_of_four_gigabytes_allocates_nothing(broker: RunningBroker) -> None:
    before = allocated(broker)
    link = _link(broker)
    link.send(b"\xff\xff\xff\xff\x02\x00\x00\x00" + b"x" * 1_000)
    assert _ended(link) == "amqp:connection:framing-error"
    assert allocated(broker) - before < 5 * MIB
    assert_serves(broker)


@pytest.mark.parametrize("where", ["performative", "annotations"])
def test_deeply_nested_values_are_refused(broker: RunningBroker, where: str) -> None:
    """A list in a list, and so on."""
    deep = b"\x40"
    while len(deep) < _DEEP:
        deep = b"\xd0" + (len(deep) + 4).to_bytes(4) + (1).to_bytes(4) + deep
    _declare(broker, "deep")
    link = _publisher(broker, "/queues/deep")
    if where == "performative":
        link.send(encode_frame(b"\x00\x53\x12" + deep, _CHANNEL))
        assert _ended(link) == "amqp:decode-error"
    else:
        entry = b"\xa3\x01a" + deep
        sections = b"\x00\x53\x72\xd1" + (len(entry) + 4).to_bytes(4) + (2).to_bytes(4) + entry
        link.send(link.message(_CHANNEL, _HANDLE, sections + data_section(b"x"))[1])
        while not link.performatives:
            link.read()
        assert link.performatives.pop(0).error.condition == "amqp:decode-error"
        link.goodbye()
    assert_serves(broker)


def test_a_body_that_is_nested_deeply_passes_unread(broker: RunningBroker) -> None:
    deep = b"\x40"
    while len(deep) < _DEEP:
        deep = b"\xd0" + (len(deep) + 4).to_bytes(4) + (1).to_bytes(4) + deep
    _declare(broker, "unread")
    link = _publisher(broker, "/queues/unread")
    link.send(link.message(_CHANNEL, _HANDLE, b"\x00\x53\x77" + deep, settled=True)[1])
    link.goodbye()
    with RawClient(broker) as client:
        got = client.ask(m.BasicGet(queue="unread", no_ack=True), m.BasicGetOk)
        assert got.body.endswith(deep)
    assert_serves(broker)


def test_a_message_of_a_hundred_thousand_tiny_transfers_arrives_whole(
    broker: RunningBroker,
) -> None:
    _declare(broker, "tiny")
    before = allocated(broker)
    link = _publisher(broker, "/queues/tiny")
    outcomes: list[Any] = []
    link.on_outcome = lambda _channel, _first, _last, state: outcomes.append(state)
    session = link.sessions[_CHANNEL]
    body = bytes(n % 251 for n in range(20_000))
    payload = data_section(body)
    _, octets = link.message(_CHANNEL, _HANDLE, payload, cut=1)
    session.transfers -= len(payload)
    frames = _frames(octets)
    while frames:
        while session.transfers >= session.room:
            link.read()
        some = frames[: session.room - session.transfers]
        del frames[: len(some)]
        session.transfers += len(some)
        link.send(b"".join(some))
    while not outcomes:
        link.read()
    assert outcomes == [c.Accepted()]
    link.goodbye()
    with RawClient(broker) as client:
        assert client.ask(m.BasicGet(queue="tiny", no_ack=True), m.BasicGetOk).body == body
    assert allocated(broker) - before < 20 * MIB


def _frames(octets: bytes) -> list[bytes]:
    found, at = [], 0
    while at < len(octets):
        end = at + int.from_bytes(octets[at : at + 4])
        found.append(octets[at:end])
        at = end
    return found


def test_peers_that_vanish_inside_a_delivery_leave_nothing_behind(broker: RunningBroker) -> None:
    _declare(broker, "half")
    files = open_files(broker)
    for number in range(60):
        link = _publisher(broker, "/queues/half")
        _, octets = link.message(_CHANNEL, _HANDLE, payload_of(b"y" * 50_000), cut=7_000)
        link.send(octets[: 10 + number * (len(octets) - 11) // 60])
        _reset(link)
    assert eventually(lambda: open_files(broker) <= files), "connections are left"
    assert _depth(broker, "half") == 0
    assert_serves(broker)


def test_deliveries_that_are_aborted_for_ever_cost_nothing(broker: RunningBroker) -> None:
    _declare(broker, "aborted")
    limits: list[int] = []

    def flow(_channel: int, flow: c.Flow) -> None:
        limits.append((flow.delivery_count or 0) + (flow.link_credit or 0))

    link = _publisher(broker, "/queues/aborted", flow)
    before = allocated(broker)
    session = link.sessions[_CHANNEL]
    for number in range(5_000):
        while number >= limits[-1] or session.transfers + 2 > session.room:
            link.read()
        begun = c.Transfer(_HANDLE, number, number.to_bytes(4), 0, more=True)
        ended = c.Transfer(_HANDLE, aborted=True)
        session.transfers += 2
        link.send(encode_frame(begun.encoded() + BODY) + encode_frame(ended.encoded()))
    link.goodbye()
    assert allocated(broker) - before < 5 * MIB
    assert _depth(broker, "aborted") == 0


@pytest.mark.parametrize("transacted", [False, True])
def test_a_consumer_that_vanishes_gives_its_messages_back(
    broker: RunningBroker, transacted: bool
) -> None:
    name = f"kept-{transacted}"
    _declare(broker, name)
    publisher = _publisher(broker, f"/queues/{name}")
    bodies = [b"%d" % number for number in range(100)]
    for body in bodies:
        publisher.send(publisher.message(_CHANNEL, _HANDLE, payload_of(body), settled=True)[1])
    publisher.goodbye()
    link = _link(broker)
    found: list[Delivery1] = []
    link.on_delivery = found.append
    link.attach(_CHANNEL, _HANDLE, c.Source(f"/queues/{name}"), c.Target())
    link.credit(_CHANNEL, _HANDLE, 0, 100)
    while len(found) < 100:
        link.read()
    if transacted:
        states: list[Any] = []
        link.on_outcome = lambda _channel, _first, _last, state: states.append(state)
        link.attach(_CHANNEL, 1, c.Source(), c.Coordinator())
        wish = b"\x00\x53\x77" + c.Declare().encoded()
        link.send(link.message(_CHANNEL, 1, wish)[1])
        while not states:
            link.read()
        state = c.TransactionalState(states[0].txn_id, c.Accepted())
        link.say(c.Disposition(True, found[0].number, found[-1].number, True, state))
        # A session is served in order: this shows that the disposition was read.
        link.attach(_CHANNEL, 2, c.Source(), c.Target(f"/queues/{name}"))
    _reset(link)
    assert eventually(lambda: _depth(broker, name) == 100)
    with RawClient(broker) as client:
        for body in bodies:
            got = client.ask(m.BasicGet(queue=name, no_ack=True), m.BasicGetOk)
            assert got.body == body
            assert got.method.redelivered  # type: ignore[attr-defined]


def test_sessions_and_links_are_many_and_then_enough(broker: RunningBroker) -> None:
    before = allocated(broker)
    link = Link1(broker.port)
    count = 500
    for channel in range(count):
        link.begin(channel)
    assert allocated(broker) - before < 40 * MIB
    for handle in range(256):
        link.attach(0, handle, c.Source(), c.Target("/exchanges/amq.fanout"))
    asked = c.Attach("x", 256, source=c.Source(), target=c.Target("/exchanges/amq.fanout"))
    asked.initial_delivery_count = 0
    link.say(asked)
    assert _ended(link) == "amqp:connection:framing-error"
    assert allocated(broker) - before < 40 * MIB
    assert_serves(broker)


def test_a_filter_and_properties_of_a_megabyte_are_refused_or_forgotten(
    broker: RunningBroker,
) -> None:
    _declare(broker, "big")
    before = allocated(broker)
    for _ in range(10):
        link = _link(broker)
        source = c.Source("/queues/big", filter={Symbol("f" * 200): "x" * 100_000})
        link.attach(_CHANNEL, _HANDLE, source, c.Target())
        link.goodbye()
    assert allocated(broker) - before < 10 * MIB
    assert_serves(broker)
