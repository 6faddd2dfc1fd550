"""The hub: who has something to do, and who is held back while memory is short."""

from __future__ import annotations

from harebell.front.hub import DISK, FILES, Hub
from harebell.wire.v09 import methods as m
from tests.unit.front.session09.world import World, publish


def test_a_connection_is_dirty_once_however_much_it_writes() -> None:
    world = World()
    peer = world.peer()
    world.hub.take_dirty()
    for _ in range(3):
        peer.send(m.BasicQos(0, 1))
    assert world.hub.dirty == [peer.connection]
    assert world.hub.take_dirty() == [peer.connection]
    assert world.hub.dirty == []
    assert not peer.connection.dirty


def test_a_publisher_that_takes_memory_over_the_mark_is_told_and_not_read() -> None:
    world = World(watermark=10_000)
    publisher = world.peer()
    publisher.ask(m.QueueDeclare("q"))
    publisher.give(publish(b"x" * 12_000))
    assert publisher.methods() == [m.ConnectionBlocked("low on memory")]
    assert publisher.connection.paused
    assert world.hub.blocked == [publisher.connection]


def test_a_client_that_cannot_be_told_is_held_all_the_same() -> None:
    world = World(watermark=10_000)
    publisher = world.peer(capabilities={})
    publisher.ask(m.QueueDeclare("q"))
    publisher.give(publish(b"x" * 12_000))
    assert publisher.methods() == []
    assert publisher.connection.paused


def test_a_consumer_is_not_held_and_its_taking_frees_the_publisher() -> None:
    world = World(watermark=10_000)
    publisher, consumer = world.peer(), world.peer()
    publisher.ask(m.QueueDeclare("q"))
    publisher.give(publish(b"x" * 12_000))
    publisher.methods()
    world.hub.relieve()
    assert publisher.connection.paused, "nothing was taken yet"
    consumer.send(m.BasicGet("q", no_ack=True))
    assert not consumer.connection.paused
    world.hub.relieve()
    assert publisher.methods() == [m.ConnectionUnblocked()]
    assert not publisher.connection.paused
    assert world.hub.blocked == []


def test_a_blocked_publisher_that_goes_away_is_forgotten() -> None:
    world = World(watermark=10_000)
    publisher = world.peer()
    publisher.ask(m.QueueDeclare("q"))
    publisher.give(publish(b"x" * 12_000))
    publisher.connection.eof()
    assert world.hub.blocked == []
    assert world.hub.connections == set()


def test_a_publisher_is_told_of_everything_that_is_short() -> None:
    world = World(watermark=10_000)
    publisher = world.peer()
    publisher.ask(m.QueueDeclare("q"))
    assert world.hub.set_short(DISK, True)
    assert not world.hub.set_short(DISK, True)
    publisher.give(publish(b"x" * 12_000))
    assert publisher.methods() == [m.ConnectionBlocked("low on memory & disk")]
    world.broker.vhosts["/"].queues["q"].purge()
    world.hub.relieve()
    assert publisher.connection.paused
    assert world.hub.set_short(DISK, False)
    world.hub.relieve()
    assert publisher.methods() == [m.ConnectionUnblocked()]


def test_a_shortage_holds_nobody_who_does_not_publish() -> None:
    world = World()
    peer = world.peer()
    world.hub.set_short(FILES, True)
    peer.ask(m.QueueDeclare("q"))
    assert not peer.connection.paused
    assert world.hub.reason() == "low on file handles"
    assert world.hub.short


class Waits:
    def __init__(self, hub: Hub, commits: int) -> None:
        self.hub = hub
        self.commits = commits
        hub.waiting[self] = None

    def committed(self) -> None:
        self.commits -= 1
        if self.commits:
            self.hub.waiting[self] = None


def test_who_waits_for_another_commit_stays_and_who_does_not_goes() -> None:
    hub = World().hub
    one, two = Waits(hub, 1), Waits(hub, 2)
    hub.committed()
    assert list(hub.waiting) == [two]
    hub.committed()
    assert (one.commits, two.commits) == (0, 0)
    assert hub.waiting == {}
