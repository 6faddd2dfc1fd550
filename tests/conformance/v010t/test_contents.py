"""Classes file and stream where transitional 0-10 differs from 0-8, or has more.

What both share is in `tests/conformance/file_stream`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.methods_older import FileConsume, FilePublish, StreamConsume, StreamPublish
from harebell.wire.v09.methods_transitional import (
    ExecutionComplete,
    ExecutionFlush,
    SessionClose,
    SessionFlow,
    SessionOpen,
)
from harebell.wire.v09.property_list import FileProperties
from tests.conformance.conftest import delete_declared
from tests.conformance.file_stream.versions import Peer10t
from tests.conformance.frames import METHOD, frame
from tests.conformance.peers import peers_of
from tests.conformance.sites import MemorySite, Site
from tests.conformance.v010t.transfers import encoded

Connect = Callable[[], Peer10t]


@pytest.fixture
def connect08(site: Site) -> Iterator[Connect]:
    """Makes peers of this version ."""
    yield from peers_of(site, Peer10t, partial(delete_declared, site))


@pytest.fixture
def connect08_memory(memory: MemorySite) -> Iterator[Connect]:
    """The same, with a broker in memory whose clock the test moves."""
    yield from peers_of(memory, Peer10t)


def _ticket(peer: Peer10t, *rights: str) -> int:
    granted: m.AccessRequestOk = peer.ask(
        m.AccessRequest(
            "/data", **{name: name in rights for name in ("passive", "active", "write", "read")}
        )
    )
    return granted.ticket


@pytest.mark.departs("0-10t#142")
@pytest.mark.parametrize(
    ("arguments", "order"), [({}, range(10)), ({"x-max-priority": 9}, range(9, -1, -1))]
)
def test_files_of_ten_priorities_are_ten_levels_where_the_queue_was_declared_with_them(
    peer08: Peer10t, arguments: dict[str, int], order: range
) -> None:
    queue = peer08.queue("", arguments=arguments)
    for priority in range(10):
        properties = FileProperties(priority=priority)
        peer08.publish_file(queue, b"%d" % priority, f"{queue}-{priority}", properties=properties)
    peer08.files(queue)
    assert [peer08.take_file().body for _ in range(10)] == [b"%d" % level for level in order]


@pytest.mark.rule("0-10t#146")
def test_a_ticket_without_read_access_consumes_no_files(peer08: Peer10t) -> None:
    queue = peer08.queue("")
    ticket = _ticket(peer08, "passive", "write")
    peer08.send(FileConsume(queue=queue, ticket=ticket))
    peer08.refused(403, "does not give read access")


@pytest.mark.rule("0-10t#171")
def test_a_ticket_without_read_access_consumes_no_packets(peer08: Peer10t) -> None:
    queue = peer08.queue("")
    ticket = _ticket(peer08, "passive", "write")
    peer08.send(StreamConsume(queue=queue, ticket=ticket))
    peer08.refused(403, "does not give read access")


@pytest.mark.rule("0-10t#153")
def test_a_ticket_without_write_access_publishes_no_files(peer08: Peer10t) -> None:
    queue = peer08.queue("")
    ticket = _ticket(peer08, "passive", "read")
    peer08.stage("refused", b"x")
    peer08.send(FilePublish("", queue, identifier="refused", ticket=ticket))
    peer08.refused(403, "does not give write access")


@pytest.mark.rule("0-10t#175")
def test_a_ticket_without_write_access_publishes_no_packets(peer08: Peer10t) -> None:
    queue = peer08.queue("")
    ticket = _ticket(peer08, "passive", "read")
    peer08.send(StreamPublish("", queue, ticket=ticket))
    peer08.refused(403, "does not give write access")


@pytest.mark.rule("0-10t#141")
def test_a_publisher_of_files_on_a_session_is_stopped_by_session_flow(peer08: Peer10t) -> None:
    peer08.ask(SessionOpen(0), 2)
    queue: str = peer08.ask(m.QueueDeclare(exclusive=True, arguments={"x-max-length": 1}), 2).queue
    for number in range(2):
        peer08.publish_file(queue, b"%d" % number, f"flow-{number}", channel=2)
    assert not peer08.expect(SessionFlow, 2).active
    peer08.send(m.BasicGet(queue=queue, no_ack=True), channel=2)
    peer08.expect_whole(m.BasicGetOk, 2)
    assert peer08.expect(SessionFlow, 2).active
    peer08.ask(SessionClose(), 2)


def test_headers_of_files_come_in_types_that_the_client_can_read(peer08: Peer10t) -> None:
    queue = peer08.queue("")
    properties = FileProperties(headers={"yes": True, "n": 5, "big": 2**40})
    peer08.files(queue)
    # What a client writes it can read, too; this one has been plain so far.
    other = FileProperties(headers={"n": 5})
    peer08.publish_file(queue, b"x", "plain", properties=other)
    assert peer08.take_file().properties.headers == {"n": 5}
    peer08.publish_file(queue, b"y", "letters", properties=properties)
    assert peer08.take_file().properties.headers == {"yes": True, "n": 5, "big": 2**40}


def test_a_plain_client_reads_the_headers_of_another_as_text(connect08: Connect) -> None:
    writer, reader = connect08().open(), connect08().open()
    queue: str = writer.queue("")
    reader.files(queue)
    properties = FileProperties(headers={"yes": True, "n": 5})
    writer.publish_file(queue, b"x", "plainly", properties=properties)
    found = reader.take_file()
    assert found.properties.headers == {"yes": "true", "n": 5}


@pytest.mark.parametrize("kind", ["basic", "message", "file", "stream"])
def test_a_publish_of_each_class_is_complete_when_its_content_has_come(
    peer08: Peer10t, kind: str
) -> None:
    queue = peer08.queue("")
    if kind == "basic":
        peer08.publish("", queue, b"body")
    elif kind == "message":
        peer08.send_bytes(frame(METHOD, 1, encoded(queue, b"body")))
    elif kind == "file":
        peer08.publish_file(queue, b"body", f"complete-{queue}")
    else:
        peer08.packet(queue, b"body")
    peer08.send(ExecutionFlush())
    said = peer08.expect(ExecutionComplete)
    # queue.declare, and what the publish took.
    assert said.cumulative_execution_mark == 1 + (3 if kind == "file" else 1)
    assert said.ranged_execution_set == ()
    assert peer08.count(queue) == 1


@pytest.mark.rule("0-10t#061")
def test_every_class_is_sent_through_every_exchange_to_every_queue(peer08: Peer10t) -> None:
    """Create an exchange of each type, queues bound to each, send each content to each queue."""
    kinds = ("direct", "fanout", "topic", "headers")
    queues = [peer08.queue("") for _ in range(3)]
    for kind in kinds:
        peer08.ask(m.ExchangeDeclare(f"any-{kind}-{queues[0]}", kind))
        for queue in queues:
            peer08.ask(m.QueueBind(queue=queue, exchange=f"any-{kind}-{queues[0]}",
                                   routing_key="k"))  # fmt: skip
    for kind in kinds:
        exchange = f"any-{kind}-{queues[0]}"
        peer08.publish(exchange, "k", b"basic")
        transfer = encoded("k", b"message", destination=exchange)
        peer08.send_bytes(frame(METHOD, 1, transfer))
        peer08.publish_file("k", b"file", f"{exchange}-file", exchange)
        peer08.packet("k", b"stream", exchange)
    for queue in queues:
        assert peer08.count(queue) == 4 * len(kinds)
        found = []
        for _ in range(4 * len(kinds)):
            peer08.send(m.BasicGet(queue=queue, no_ack=True))
            found.append(peer08.expect_whole(m.BasicGetOk).body)
        assert found == [b"basic", b"message", b"file", b"stream"] * len(kinds)
    for kind in kinds:
        peer08.ask(m.ExchangeDelete(f"any-{kind}-{queues[0]}"))
