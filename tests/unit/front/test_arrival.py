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


def test_octets_that_come_with_the_header_are_read_by_the_connection_that_follows() -> None:
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


def test_a_hundred_headers_at_once_are_answered_in_many_turns() -> None:
    world = World()
    # From many addresses: none of them has done much.
    peers = [world.connect(f"10.0.0.{each}") for each in range(100)]
    world.limit(1_000)
    for peer in peers:
        peer.give(HEADER_0_9_1)
    assert sum(peer.connection.version == "0-9-1" for peer in peers) <= 10
    assert world.turns() >= 10
    for peer in peers:
        assert [type(method) for method in peer.methods()] == [m.ConnectionStart]


def test_octets_behind_a_header_that_waits_for_its_turn_are_read_after_it() -> None:
    world = World()
    first, second, third = world.connect(), world.connect(), world.connect()
    world.limit(100)
    first.give(HEADER_0_9_1)
    second.give(HEADER_0_9_1[:4])
    second.give(HEADER_0_9_1[4:] + b"\x09\x00\x00\x00")
    second.give(b"\x00\x00\x00\xce")
    third.give(b"no AMQP at all")
    assert second.connection.version == ""
    assert second.connection.held_back
    assert not third.connection.closing
    world.turns()
    assert second.connection.version == "0-9-1"
    assert second.connection.closing
    assert third.connection.closing


def test_a_peer_that_leaves_before_the_turn_of_its_header_leaves_nothing() -> None:
    world = World()
    peers = [world.connect() for _ in range(3)]
    world.limit(100)
    for peer in peers:
        peer.give(HEADER_0_9_1)
    peers[2].connection.eof()
    world.turns()
    assert len(world.registry.connections) == 2
