"""What the document wants to be there after a restart, shown with a real data directory."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v09.methods_older import FileOpen, FilePublish, FileStage
from harebell.wire.v09.methods_transitional import (
    MessageAppend,
    MessageClose,
    MessageEmpty,
    MessageGet,
    MessageOpen,
)
from harebell.wire.v09.property_list import FILE, FileProperties
from tests.conformance.conftest import StartSite
from tests.conformance.frames import BODY, HEADER, frame
from tests.conformance.sites import SocketSite
from tests.conformance.v010t.peer import Peer
from tests.conformance.v010t.transfers import expect_transfer, transfer, transferred

Restart = Callable[[], Peer]


@pytest.fixture
def restart(start_site: StartSite) -> Iterator[Restart]:
    """Each call stops the broker, if it runs, and gives a peer of a new one on the same data."""
    running: list[SocketSite] = []
    peers: list[Peer] = []

    def again() -> Peer:
        if peers:
            peers.pop().drop()
        if running:
            running.pop().close()
        running.append(start_site())
        peers.append(Peer(running[-1], running[-1].connect()).open())
        return peers[-1]

    yield again
    for peer in peers:
        peer.done()
    for site in running:
        site.close()


@pytest.mark.rule("0-10t#237")
def test_a_persistent_transfer_survives_a_restart(restart: Restart) -> None:
    """Send a persistent message, stop the server, restart it, see whether it is still there."""
    peer = restart()
    peer.queue("q", durable=True)
    transferred(peer, "q", b"kept", delivery_mode=2, priority=3, application_headers={"a": 1})
    transferred(peer, "q", b"lost", delivery_mode=1)
    peer = restart()
    peer.send(MessageGet(queue="q", no_ack=True))
    expect_transfer(peer, b"kept", delivery_mode=2, priority=3, application_headers={"a": 1})
    peer.send(MessageGet(queue="q"))
    peer.expect(MessageEmpty)


def test_a_transfer_by_reference_survives_a_restart(restart: Restart) -> None:
    peer = restart()
    peer.queue("q", durable=True)
    peer.send(MessageOpen(reference=b"r"))
    transfer(peer, "q", reference=b"r", delivery_mode=2)
    for piece in (b"one", b"two"):
        peer.send(MessageAppend(reference=b"r", octets=piece))
    peer.run(MessageClose(reference=b"r"))
    peer = restart()
    peer.send(MessageGet(queue="q", no_ack=True))
    expect_transfer(peer, b"onetwo")


@pytest.mark.rule("0-10t#140")
def test_a_file_survives_a_restart(restart: Restart) -> None:
    peer = restart()
    peer.queue("q", durable=True)
    assert peer.ask(FileOpen("f", 4)).staged_size == 0
    peer.send(FileStage())
    header = frame(HEADER, 1, FILE.header(4, FILE.encode(FileProperties(filename="f.txt"))))
    peer.send_bytes(header, frame(BODY, 1, b"kept"))
    peer.run(FilePublish(routing_key="q", identifier="f"))
    peer = restart()
    peer.send(MessageGet(queue="q", no_ack=True))
    expect_transfer(peer, b"kept")


@pytest.mark.rule("0-10t#107")
def test_a_persistent_message_of_class_basic_survives_a_restart(restart: Restart) -> None:
    """Send a persistent message, stop the server, restart it, see whether it is still there."""
    peer = restart()
    peer.queue("q", durable=True)
    peer.publish("", "q", b"kept", BasicProperties(delivery_mode=2))
    peer.settle()
    peer = restart()
    assert peer.get("q", no_ack=True).body == b"kept"


@pytest.mark.rule("0-10t#071")
def test_a_durable_queue_is_there_after_a_restart(restart: Restart) -> None:
    """Create a durable queue, restart the server, send a message to it: it is delivered."""
    peer = restart()
    peer.queue("q", durable=True)
    peer.queue("transient")
    peer = restart()
    transferred(peer, "q", b"body")
    peer.send(MessageGet(queue="q", no_ack=True))
    expect_transfer(peer, b"body")
    peer.send(m.QueueDeclare(queue="transient", passive=True))
    peer.expect_channel_close(404, "queue.declare", "transient")


@pytest.mark.rule("0-10t#080")
def test_a_durable_binding_is_there_after_a_restart(restart: Restart) -> None:
    """Bind a durable queue to a durable exchange, restart, use the combination."""
    peer = restart()
    peer.run(m.ExchangeDeclare(exchange="e", type="direct", durable=True))
    peer.queue("q", durable=True)
    peer.run(m.QueueBind(queue="q", exchange="e", routing_key="k"))
    peer = restart()
    transferred(peer, "k", b"body", destination="e")
    peer.send(MessageGet(queue="q", no_ack=True))
    expect_transfer(peer, b"body", exchange="e")
