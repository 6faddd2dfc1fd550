"""From accepting to the first eight octets: who follows an arrival, and who is turned away."""

from __future__ import annotations

import pytest

from harebell.front.versions import OPENERS
from harebell.wire.v09 import methods as m
from harebell.wire.v09.states import ConnectionState
from tests.unit.front.amqp_0_9_1.world import HEADER_0_9_1, World


def test_the_connection_that_follows_takes_the_place_of_the_arrival() -> None:
    world = World()
    peer = world.connect()
    arrival = peer.connection
    assert arrival.version == ""
    assert world.registry.connections == {arrival}
    peer.give(HEADER_0_9_1)
    assert peer.connection is not arrival
    assert world.registry.connections == {peer.connection}
    assert peer.connection.version == "0-9-1"
    assert peer.connection.origin == arrival.origin == 1
    assert peer.connection.transport is peer
    assert [type(method) for method in peer.methods()] == [m.ConnectionStart]


def test_what_comes_with_the_header_is_read_by_the_connection_that_follows() -> None:
    world = World()
    peer = world.connect()
    peer.give(HEADER_0_9_1 + b"\x08\x00\x00\x00\x00\x00\x00\xce")
    assert peer.connection.state is ConnectionState.STARTING
    assert not peer.connection.closing
    peer.give(b"\x09\x00\x00\x00\x00\x00\x00\xce")
    assert peer.connection.closing


def test_the_time_for_the_handshake_begins_when_the_socket_is_accepted() -> None:
    world = World(handshake_timeout=10.0)
    peer = world.connect()
    world.now += 6
    peer.give(HEADER_0_9_1)
    world.now += 5
    peer.connection.tick(world.now)
    assert peer.connection.closing
    assert any("{handshake_timeout,starting}" in text for _, text in world.log)


def test_a_peer_that_says_nothing_is_cut() -> None:
    world = World(handshake_timeout=10.0)
    peer = world.connect()
    peer.connection.tick(world.now + 9)
    assert not peer.connection.closing
    peer.connection.tick(world.now + 11)
    assert peer.connection.closing
    assert any("{handshake_timeout,header}" in text for _, text in world.log)


def test_the_end_of_the_broker_is_the_end_of_an_arrival() -> None:
    world = World()
    peer = world.connect()
    peer.connection.force_close("shutdown", world.now)
    assert peer.connection.closing
    peer.connection.eof()
    assert not world.registry.connections


def test_a_version_that_nothing_serves_is_answered_with_the_best_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(OPENERS, "0-9")
    world = World()
    peer = world.connect()
    peer.give(b"AMQP\x01\x01\x00\x09")
    assert peer.connection.take_output(world.now) == HEADER_0_9_1
    assert peer.connection.closing
