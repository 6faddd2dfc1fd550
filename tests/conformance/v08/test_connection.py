"""Class connection of 0-8 and 0-9: the beginning and the end."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.admin.context import AdminContext
from harebell.admin.rows.connections import connection_row
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_8 import AMQP_0_8
from harebell.wire.v09.amqp_0_9 import AMQP_0_9
from harebell.wire.v09.plain_fields import is_plain
from tests.conformance.frames import METHOD, frame
from tests.conformance.raw import start_ok
from tests.conformance.sites import MemorySite
from tests.conformance.v08.conftest import Connect
from tests.conformance.v08.peer import Peer8, Peer9

_SERVER_PROPERTIES = 6
"""Where the table begins in connection.start: two ids, two octets."""


@pytest.mark.rule("0-8#009")
@pytest.mark.parametrize("greeting", [b"AMQP\x01\x01\x08\x00", b"AMQP\x01\x01\x09\x01"])
def test_both_headers_of_0_8_are_answered_with_version_8_0(
    connect: Connect, greeting: bytes
) -> None:
    peer = connect()
    peer.send_bytes(greeting)
    start = peer.expect(m.ConnectionStart)
    assert (start.version_major, start.version_minor) == (8, 0)


def test_0_9_is_answered_with_version_0_9(connect_0_9: Connect) -> None:
    start = connect_0_9().greet()
    assert (start.version_major, start.version_minor) == (0, 9)


@pytest.mark.rule("0-8#005")
def test_the_server_introduces_itself_in_types_that_every_client_reads(
    connect_older: Connect,
) -> None:
    peer = connect_older()
    peer.send_bytes(peer.GREETING)
    payload = peer.next_frame("connection.start").payload
    assert is_plain(payload, _SERVER_PROPERTIES)
    start = peer.SPEC.decode(payload)
    assert isinstance(start, m.ConnectionStart)
    assert start.server_properties["capabilities"] == {}


@pytest.mark.rule("0-8#013", "0-8#015")
def test_4096_octets_pass_before_and_after_tuning(connect_older: Connect) -> None:
    peer = connect_older()
    peer.greet()
    response = b"\0guest\0guest"
    padding = 4096 - len(frame(METHOD, 0, peer.SPEC.encode(start_ok(response=response))))
    padded = start_ok(response=response)
    padded.client_properties["padding"] = "x" * (padding - len("padding") - 6)
    octets = frame(METHOD, 0, peer.SPEC.encode(padded))
    assert len(octets) == 4096
    peer.send_bytes(octets)
    tune = peer.expect(m.ConnectionTune)
    assert tune.frame_max == 0 or tune.frame_max >= 4096
    peer.send(m.ConnectionTuneOk(0, 4096, 0))
    peer.ask(m.ConnectionOpen())
    peer.frame_max, peer.opened = 4096, True
    peer.ask(m.ChannelOpen())
    queue = peer.queue("", exclusive=True)
    peer.publish("", queue, b"x" * (4096 - 8))
    assert peer.get(queue).pieces == (4096 - 8,)


def test_a_frame_max_below_4096_is_not_negotiated(connect_older: Connect) -> None:
    peer = connect_older()
    peer.greet()
    peer.log_in()
    peer.send(m.ConnectionTuneOk(0, 4095, 0))
    close = peer.expect(m.ConnectionClose, reply_code=530)
    assert (close.class_id, close.method_id) == (10, 31)


@pytest.mark.rule("0-8#014")
def test_channel_max_0_leaves_the_number_to_the_server(connect_older: Connect) -> None:
    peer = connect_older()
    peer.open(channel_max=0)
    for number in (2, 100):
        peer.ask(m.ChannelOpen(), number)


@pytest.mark.rule("0-8#016")
@pytest.mark.parametrize("logged_in", [False, True])
def test_nothing_works_before_the_connection_is_open(
    connect_older: Connect, logged_in: bool
) -> None:
    peer = connect_older()
    peer.greet()
    if logged_in:
        peer.log_in()
        peer.send(m.ConnectionTuneOk(0, 0, 0))
    peer.send(m.ChannelOpen(), channel=1)
    peer.expect_closed()


def test_0_8_closes_by_numbers_of_its_own() -> None:
    assert AMQP_0_8.named("connection.close").head == b"\0\x0a\0\x3c"
    assert AMQP_0_8.named("connection.close-ok").head == b"\0\x0a\0\x3d"
    assert AMQP_0_9.named("connection.close").head == b"\0\x0a\0\x32"


@pytest.mark.rule("0-8#024")
def test_a_close_frees_everything_at_once(connect_older: Connect, name: str) -> None:
    peer, other = connect_older().open(), connect_older().open()
    peer.queue(name, exclusive=True)
    other.queue(f"{name}-shared")
    other.publish("", f"{name}-shared", b"one")
    peer.consume(f"{name}-shared")
    peer.expect_delivery(b"one")
    peer.close()
    assert other.get(f"{name}-shared").method.redelivered
    other.ask(m.QueueDelete(f"{name}-shared"))
    other.send(m.QueueDeclare(name, passive=True))
    other.expect(m.ChannelClose, reply_code=404)
    other.send(m.ChannelCloseOk())


def test_capabilities_mean_nothing_in_0_8(memory: MemorySite) -> None:
    peer = Peer8(memory, memory.connect())
    peer.open(capabilities=("connection.blocked", "consumer_cancel_notify"))
    memory.registry.publishers.set_short("disk", True)
    peer.queue("q")
    peer.consume("q")
    peer.publish("", "q", b"waits, and is not told: there is no method for it")
    memory.registry.publishers.set_short("disk", False)
    memory.turn()
    # Neither blocked nor unblocked comes before it.
    peer.expect_delivery()
    peer.ask(m.QueueDelete("q"))


def test_a_connection_is_listed_with_its_version(memory: MemorySite) -> None:
    context: Any = AdminContext(
        memory.broker,
        memory.users,
        memory.registry,
        None,
        lambda: memory.now,
        print,  # type: ignore[arg-type]
    )
    versions = []
    for kind in (Peer8, Peer9):
        peer = kind(memory, memory.connect()).open()
        wire: Any = peer.wire
        versions.append(connection_row(context, wire.connection)["protocol"])
        peer.close()
    assert versions == ["AMQP 0-8", "AMQP 0-9"]
