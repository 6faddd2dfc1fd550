"""Output behind barriers: what waits for a commit keeps everything after it back, in order."""

from __future__ import annotations

import pytest

from harebell.base.body_frames import encoded
from harebell.front.common.output_barrier import OutputBarrier
from harebell.front.limits import LINGER_SECONDS, OUTPUT_STOP_BYTES
from harebell.kernels.output import OutBuffer
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from harebell.wire.v09.frames import HEARTBEAT
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, frame, method_frame, publish


def slow() -> tuple[World, OctetPeer]:
    world = World(slow=True)
    return world, world.peer()


def taken(held: OutputBarrier, done: int, out: OutBuffer) -> bytes:
    return encoded(held.take(done, out))


def test_output_leaves_part_by_part_as_its_commits_are_done() -> None:
    held, out = OutputBarrier(), OutBuffer()
    out.raw(b"free ")
    held.cut(3, out)
    out.raw(b"three ")
    held.cut(3, out)
    out.raw(b"also three ")
    held.cut(5, out)
    out.raw(b"five")
    assert taken(held, 2, out) == b"free "
    assert taken(held, 2, out) == b""
    assert taken(held, 4, out) == b"three also three "
    assert held.ticket == 5
    assert taken(held, 5, out) == b"five"
    assert held.ticket == 0


DURABLE = [
    m.ExchangeDeclare("e", "fanout", durable=True),
    m.ExchangeDeclare("f", "fanout", durable=True),
    m.QueueDeclare("q", durable=True),
    m.QueueBind("q", "e"),
    m.ExchangeBind("f", "e"),
    m.QueueUnbind("q", "e"),
    m.ExchangeUnbind("f", "e"),
    m.QueuePurge("q"),
    m.QueueDelete("q"),
    m.ExchangeDelete("e"),
]


def test_every_reply_about_something_durable_waits_for_its_commit() -> None:
    world, peer = slow()
    for method in DURABLE:
        peer.send(method)
        assert peer.methods() == [], method
        assert world.store.commit.urgent, method
        world.commit()
        (answer,) = peer.methods()
        assert type(answer).__name__ == f"{type(method).__name__}Ok"


@pytest.mark.parametrize(
    "method",
    [
        m.ExchangeDeclare("t", "fanout"),
        m.ExchangeDelete("t"),
        m.QueueDeclare("t"),
        m.QueueDeclare("t", durable=True, exclusive=True),
        m.QueuePurge("q"),
        m.QueueDelete("q"),
    ],
)
def test_a_reply_about_something_transient_waits_for_nothing(method: m.Method) -> None:
    world, peer = slow()
    peer.ask(m.QueueDeclare("q"))
    peer.ask(method)
    assert not world.store.commit.urgent


def test_a_second_declare_waits_for_the_commit_of_the_first() -> None:
    world, peer = slow()
    other = world.peer()
    peer.send(m.QueueDeclare("q", durable=True))
    other.send(m.QueueDeclare("q", durable=True))
    assert other.methods() == []
    world.commit()
    assert other.methods() == peer.methods() == [m.QueueDeclareOk("q", 0, 0)]
    assert other.ask(m.QueueDeclare("q", durable=True)) == m.QueueDeclareOk("q", 0, 0)


def test_output_written_before_goes_out_and_what_comes_after_waits() -> None:
    world, peer = slow()
    peer.send(m.QueueDeclare("a"), m.QueueDeclare("b", durable=True), m.QueueDeclare("c"))
    assert peer.methods() == [m.QueueDeclareOk("a", 0, 0)]
    peer.send(m.QueueDeclare("d"))
    assert peer.methods() == []
    world.commit()
    assert [method.queue for method in peer.methods()] == ["b", "c", "d"]
    assert peer.connection.held is None
    assert peer.ask(m.QueueDeclare("e")) == m.QueueDeclareOk("e", 0, 0)


def test_a_commit_that_had_begun_before_lets_nothing_out() -> None:
    world, peer = slow()
    begun = world.store.begin()
    peer.send(m.QueueDeclare("q", durable=True))
    world.finish(begun)
    assert peer.methods() == []
    world.commit()
    assert peer.methods() == [m.QueueDeclareOk("q", 0, 0)]


def test_a_connection_with_output_to_let_out_is_dirty() -> None:
    world, peer = slow()
    peer.send(m.QueueDeclare("q", durable=True))
    world.registry.take_dirty()
    world.commit()
    assert world.registry.dirty == [peer.connection]


def test_a_connection_that_closes_is_not_finished_before_its_output_left() -> None:
    world, peer = slow()
    peer.send(m.QueueDeclare("q", durable=True))
    peer.send(m.ConnectionClose(200, "", 0, 0), channel=0)
    peer.connection.tick(peer.connection.now + LINGER_SECONDS)
    assert peer.connection.closing
    assert not peer.connection.finished
    assert peer.methods() == []
    world.commit()
    names = [type(method).__name__ for method in peer.methods()]
    assert names == ["QueueDeclareOk", "ConnectionCloseOk"]
    assert peer.connection.finished


def test_a_peer_that_is_gone_is_not_waited_for() -> None:
    world, peer = slow()
    peer.send(m.QueueDeclare("q", durable=True))
    peer.connection.eof()
    assert peer.connection.finished
    assert peer.connection.held is None
    assert world.registry.waiting == {}
    world.commit()
    assert peer.frames() == []


def test_a_peer_that_never_stops_asking_is_not_read_while_its_answers_wait() -> None:
    world, peer = slow()
    peer.ask(m.QueueDeclare("big"))
    peer.give(publish(b"x" * 100_000, "big"))
    peer.send(m.QueueDeclare("q", durable=True))
    asking = method_frame(m.BasicGet("big")) + method_frame(m.BasicNack(0, True, True))
    for _ in range(2 * OUTPUT_STOP_BYTES // 100_000):
        peer.give(asking)
    assert peer.connection.scanner.hold
    assert peer.connection.out.size < OUTPUT_STOP_BYTES + 200_000
    world.turn()
    assert peer.connection.scanner.hold
    world.commit()
    while peer.connection.scanner.hold:
        assert peer.frames() != []
        peer.connection.resume(world.now)


def test_many_short_answers_hold_input_back_too() -> None:
    _world, peer = slow()
    peer.send(m.QueueDeclare("q" * 250, durable=True))
    asking = method_frame(m.QueueDeclare("q" * 250, passive=True)) * 1000
    for _ in range(OUTPUT_STOP_BYTES // 250_000 + 2):
        peer.give(asking)
    assert peer.connection.scanner.hold


def test_a_purge_waits_only_for_a_durable_queue_with_anything_to_settle() -> None:
    world, peer = slow()
    peer.send(m.QueueDeclare("q", durable=True))
    world.commit()
    peer.methods()
    persistent = BasicProperties(delivery_mode=2)
    peer.give(publish(b"1", properties=persistent) + publish(b"2", properties=persistent))
    peer.send(m.QueuePurge("q"))
    assert peer.methods() == []
    world.commit()
    assert peer.methods() == [m.QueuePurgeOk(2)]


def test_heartbeats_go_ahead_of_what_waits_for_a_disk_that_is_full() -> None:
    world = World(slow=True)
    peer = world.peer(heartbeat=10)
    peer.send(m.QueueDeclare("q", durable=True))
    beats = 0
    for _ in range(60):
        world.now += 1.0
        peer.connection.tick(world.now)
        # The peer lives too.
        peer.give(frame(HEARTBEAT, 0, b""))
        beats += peer.frames().count((HEARTBEAT, 0, b""))
        assert not peer.connection.closing
    assert 11 <= beats <= 13
    peer.send(m.QueueDeclare("t"))
    assert peer.methods() == []
    world.commit()
    assert [method.queue for method in peer.methods()] == ["q", "t"]
