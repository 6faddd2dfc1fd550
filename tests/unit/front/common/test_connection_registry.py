"""The registry: who has something to do, and who is held back while memory is short."""

from __future__ import annotations

import pytest

from harebell.front.common.blocked_publishers import DISK, FILES
from harebell.front.common.connection_registry import ConnectionRegistry, in_turns
from harebell.model import limits
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import BODY
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, frame, publish


def test_a_connection_is_dirty_once_however_much_it_writes() -> None:
    world = World()
    peer = world.peer()
    world.registry.take_dirty()
    for _ in range(3):
        peer.send(m.BasicQos(0, 1))
    assert world.registry.dirty == [peer.connection]
    assert world.registry.take_dirty() == [peer.connection]
    assert world.registry.dirty == []
    assert not peer.connection.dirty


def test_a_publisher_that_takes_memory_over_the_mark_is_told_and_not_read() -> None:
    world = World(watermark=10_000)
    publisher = world.peer()
    publisher.ask(m.QueueDeclare("q"))
    publisher.give(publish(b"x" * 12_000))
    assert publisher.methods() == [m.ConnectionBlocked("low on memory")]
    assert publisher.connection.paused
    assert world.registry.publishers.connections == [publisher.connection]


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
    world.registry.publishers.relieve()
    assert publisher.connection.paused, "nothing was taken yet"
    consumer.send(m.BasicGet("q", no_ack=True))
    assert not consumer.connection.paused
    world.registry.publishers.relieve()
    assert publisher.methods() == [m.ConnectionUnblocked()]
    assert not publisher.connection.paused
    assert world.registry.publishers.connections == []


def test_a_blocked_publisher_that_goes_away_is_forgotten() -> None:
    world = World(watermark=10_000)
    publisher = world.peer()
    publisher.ask(m.QueueDeclare("q"))
    publisher.give(publish(b"x" * 12_000))
    publisher.connection.eof()
    assert world.registry.publishers.connections == []
    assert world.registry.connections == set()


def _pieces(body: bytes, count: int) -> list[bytes]:
    """A publish whose body comes in so many frames; the first piece has method and header too."""
    size = len(body) // count
    head = publish(body)[: -len(body) - 8]
    frames = [frame(BODY, 1, body[at : at + size]) for at in range(0, len(body), size)]
    return [head + frames[0], *frames[1:]]


def test_publishers_whose_own_halves_take_the_memory_finish_one_after_the_other() -> None:
    world = World(watermark=10_000)
    consumer = world.peer()
    consumer.ask(m.QueueDeclare("q"))
    first, second = world.peer(), world.peer()
    pieces = _pieces(b"x" * 16_000, 4)
    first.give(pieces[0] + pieces[1])
    second.give(pieces[0])
    assert second.connection.paused
    first.give(pieces[2])
    assert world.registry.gauge.unread == 16_000
    for peer, other, rest in ((second, first, pieces[1:]), (first, second, pieces[3:])):
        world.registry.publishers.relieve()
        assert (peer.connection.paused, other.connection.paused) == (False, True)
        for piece in rest:
            assert not peer.connection.paused
            peer.give(piece)
        # It waits again, and nobody else is let in while its message is in the queue.
        assert peer.connection.paused
        world.registry.publishers.relieve()
        assert peer.connection.paused
        assert other.connection.paused
        consumer.send(m.BasicGet("q", no_ack=True))
        assert consumer.bodies() == [b"x" * 16_000]
    world.registry.publishers.relieve()
    assert not first.connection.paused
    assert (world.registry.gauge.unread, world.registry.gauge.used) == (0, 0)


def test_a_publisher_that_goes_before_it_finishes_makes_room_for_the_next() -> None:
    world = World(watermark=10_000)
    first, second = world.peer(), world.peer()
    pieces = _pieces(b"x" * 16_000, 4)
    # Both begin while there is room: a message that begins without waits.
    for peer in (first, second):
        peer.give(pieces[0])
    for peer in (first, second):
        peer.give(pieces[1] + pieces[2])
    world.registry.publishers.relieve()
    assert (first.connection.paused, second.connection.paused) == (False, True)
    first.connection.eof()
    world.registry.publishers.relieve()
    assert not second.connection.paused
    assert world.registry.publishers.finishing is second.connection


def test_a_publisher_is_told_of_everything_that_is_short() -> None:
    world = World(watermark=10_000)
    publisher, other = world.peer(), world.peer()
    publisher.ask(m.QueueDeclare("q"))
    other.give(publish(b"x" * 12_000))
    assert world.registry.publishers.set_short(DISK, True)
    assert not world.registry.publishers.set_short(DISK, True)
    publisher.give(publish(b"x"))
    assert publisher.methods() == [m.ConnectionBlocked("low on memory & disk")]
    world.broker.vhosts["/"].queues["q"].purge()
    world.registry.publishers.relieve()
    assert publisher.connection.paused
    assert world.registry.publishers.set_short(DISK, False)
    world.registry.publishers.relieve()
    assert publisher.methods() == [m.ConnectionUnblocked()]


def test_a_shortage_holds_nobody_who_does_not_publish() -> None:
    world = World()
    peer = world.peer()
    world.registry.publishers.set_short(FILES, True)
    peer.ask(m.QueueDeclare("q"))
    assert not peer.connection.paused
    assert world.registry.publishers.reason() == "low on file handles"
    assert world.registry.publishers.short


class Waits:
    def __init__(self, registry: ConnectionRegistry, commits: int) -> None:
        self.registry = registry
        self.commits = commits
        registry.waiting[self] = None

    def committed(self) -> None:
        self.commits -= 1
        if self.commits:
            self.registry.waiting[self] = None


def test_only_those_that_wait_for_another_commit_stay_registered() -> None:
    registry = World().registry
    one, two = Waits(registry, 1), Waits(registry, 2)
    registry.committed()
    assert list(registry.waiting) == [two]
    registry.committed()
    assert (one.commits, two.commits) == (0, 0)
    assert registry.waiting == {}


def _transactional(world: World) -> OctetPeer:
    peer = world.peer()
    peer.ask(m.TxSelect())
    return peer


def test_messages_published_in_a_transaction_count_until_it_ends() -> None:
    world = World(watermark=100_000)
    peer = _transactional(world)
    peer.ask(m.QueueDeclare("q"))
    gauge = world.registry.gauge
    for end, left in ((m.TxRollback(), 0), (m.TxCommit(), 1), (m.ChannelClose(200, "", 0, 0), 1)):
        peer.give(publish(b"x" * 5_000))
        assert gauge.uncommitted > 5_000
        peer.ask(end)
        assert gauge.uncommitted == 0
        assert world.broker.vhosts["/"].queues["q"].ready_count() == left
        assert (gauge.used > 5_000) == bool(left)


def test_transactions_that_take_all_memory_finish_one_after_the_other() -> None:
    world = World(watermark=10_000)
    consumer = world.peer()
    consumer.ask(m.QueueDeclare("q"))
    first, second = _transactional(world), _transactional(world)
    first.give(publish(b"1" * 9_500))
    second.give(publish(b"2" * 6_000))
    assert (first.connection.paused, second.connection.paused) == (False, True)
    first.give(publish(b"3" * 6_000))
    assert first.connection.paused
    world.registry.publishers.relieve()
    assert (first.connection.paused, second.connection.paused) == (True, False)
    # It goes on as long as its transaction does, and then waits again.
    second.give(publish(b"4" * 6_000))
    assert not second.connection.paused
    second.send(m.TxCommit())
    assert second.connection.paused
    world.registry.publishers.relieve()
    assert first.connection.paused, "what was committed has to be consumed first"
    for body in (b"2", b"4"):
        consumer.send(m.BasicGet("q", no_ack=True))
        assert consumer.bodies() == [body * 6_000]
    world.registry.publishers.relieve()
    assert (first.connection.paused, second.connection.paused) == (False, True)
    first.connection.resume(world.now)
    first.send(m.TxRollback())
    world.registry.publishers.relieve()
    assert not first.connection.paused
    assert not second.connection.paused
    assert (world.registry.gauge.uncommitted, world.registry.gauge.used) == (0, 0)


def test_a_transaction_that_publishes_too_much_is_refused_and_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "TRANSACTION_BYTES", 10_000)
    world = World()
    peer = _transactional(world)
    peer.ask(m.QueueDeclare("q"))
    # A message that is too large by itself is let through: there is a limit for those.
    peer.give(publish(b"x" * 12_000))
    assert peer.ask(m.TxCommit()) == m.TxCommitOk()
    peer.give(publish(b"x" * 6_000))
    peer.give(publish(b"x" * 6_000))
    (closed,) = peer.methods()
    assert isinstance(closed, m.ChannelClose)
    assert (closed.reply_code, closed.class_id, closed.method_id) == (406, 60, 40)
    assert "the transaction publishes more than 10000 bytes" in closed.reply_text
    assert world.broker.vhosts["/"].queues["q"].ready_count() == 1
    assert world.registry.gauge.uncommitted == 0


def test_many_connections_with_output_are_written_user_by_user() -> None:
    world = World()
    world.users.add("ann", "ann", vhosts=("/",))
    busy = [world.connect() for _ in range(40)]
    healthy = world.connect()
    for peer in busy:
        peer.log_in({})
    healthy.log_in({}, user=b"ann")
    links = [peer.connection for peer in [*busy, healthy]]
    assert in_turns(links)[1] is healthy.connection
    assert sorted(map(id, in_turns(links))) == sorted(map(id, links))
    assert in_turns(links[:5]) == links[:5]


def test_connections_that_were_not_written_in_time_come_first_in_the_next_turn() -> None:
    world = World()
    first, second, third = (world.connect().connection for _ in range(3))
    for link in (first, second):
        link.touch()
    taken = world.registry.take_dirty()
    assert taken == [first, second]
    third.touch()
    world.registry.dirty_again(taken)
    assert world.registry.dirty == [first, second, third]
    second.touch()
    assert world.registry.dirty == [first, second, third]


def test_the_time_that_a_connection_is_blocked_is_counted() -> None:
    world = World(watermark=10_000)
    publisher, consumer = world.peer(), world.peer()
    publisher.ask(m.QueueDeclare("q"))
    for passed in (1_500, 250):
        publisher.give(publish(b"x" * 12_000))
        before = world.registry.publishers.ms_of(publisher.connection)
        world.clock.advance(passed)
        assert world.registry.publishers.ms_of(publisher.connection) == before + passed
        consumer.send(m.BasicGet("q", no_ack=True))
        world.registry.publishers.relieve()
        world.clock.advance(10_000)
        assert world.registry.publishers.ms_of(publisher.connection) == before + passed
    assert world.registry.publishers.blocked_ms == 1_750
    assert world.registry.publishers.ms_of(consumer.connection) == 0


def test_the_blocked_time_of_a_connection_that_ends_stays_in_the_total() -> None:
    world = World(watermark=10_000)
    publisher = world.peer()
    publisher.ask(m.QueueDeclare("q"))
    publisher.give(publish(b"x" * 12_000))
    world.clock.advance(700)
    publisher.connection.eof()
    assert world.registry.publishers.blocked_ms == 700


def test_a_message_that_begins_while_something_is_short_waits_for_the_end_of_that() -> None:
    world = World()
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    queue = world.broker.vhosts["/"].queues["q"]
    world.registry.publishers.set_short(DISK, True)
    peer.give(publish(b"one") + publish(b"two"))
    assert peer.methods() == [m.ConnectionBlocked("low on disk")]
    peer.connection.resume(world.now)
    assert queue.ready_count() == 0
    world.registry.publishers.set_short(DISK, False)
    world.registry.publishers.relieve()
    peer.connection.resume(world.now)
    assert peer.methods() == [m.ConnectionUnblocked()]
    assert queue.ready_count() == 2
