"""A large message on disk is read in slices before basic.get answers: input waits meanwhile."""

from __future__ import annotations

from collections.abc import Callable

from harebell.wire.v09 import methods as m
from tests.unit.front.amqp_0_9_1.world import World, publish
from tests.unit.model.queue.features.test_large_messages import SpilledLog, filled


def spilled_world(*spilled: int) -> tuple[World, SpilledLog]:
    """A broker whose queue "q" has three messages, of which some are large and on disk."""
    world, log = World(), SpilledLog(*spilled)
    world.limit(1_000_000)
    vhost = world.broker.vhosts["/"]
    vhost.queues["q"] = filled(log)
    return world, log


def test_a_large_message_is_read_in_slices_and_the_next_methods_wait() -> None:
    world, log = spilled_world(0)
    peer = world.peer()
    peer.send(m.BasicGet(queue="q", no_ack=True), m.BasicGet(queue="q", no_ack=True))
    assert peer.frames() == []
    assert list(log.fetching) == [0]
    log.fetched(0)
    world.turns()
    frames = peer.frames()
    assert [load for kind, _, load in frames if kind == 3] == [b"0", b"1"]


def test_other_connections_take_messages_meanwhile_and_the_next_large_one_is_read_in_turn() -> None:
    world, log = spilled_world(0, 1)
    peer, other = world.peer(), world.peer()
    peer.send(m.BasicGet(queue="q", no_ack=True))
    other.send(m.BasicGet(queue="q", no_ack=True))
    assert other.frames() == []
    log.fetched(0)
    world.turns()
    assert sorted(peer.bodies() + other.bodies()) == [b"0"]
    log.fetched(1)
    world.turns()
    assert peer.bodies() + other.bodies() == [b"1"]


def test_a_queue_that_is_deleted_meanwhile_is_not_found() -> None:
    world, log = spilled_world(0)
    peer = world.peer()
    peer.send(m.BasicGet(queue="q"))
    world.peer().send(m.QueueDelete(queue="q", nowait=True))
    log.fetched(0)
    world.turns()
    (closed,) = peer.methods()
    assert isinstance(closed, m.ChannelClose)
    assert closed.reply_code == 404


def test_a_connection_that_ends_meanwhile_takes_nothing() -> None:
    world, log = spilled_world(0)
    peer = world.peer()
    peer.send(m.BasicGet(queue="q"))
    peer.connection.eof()
    log.fetched(0)
    world.turns()
    queue = world.broker.vhosts["/"].queues["q"]
    assert (queue.ready_count(), queue.unacked) == (3, 0)
    other = world.peer()
    other.give(publish(b"more"))
    assert isinstance(other.ask(m.BasicGet(queue="q", no_ack=True)), m.BasicGetOk)


class NearLog(SpilledLog):
    """A log that reads a large message within the call, as a slice had time for all of it."""

    def load_spilled(self, position: int, done: Callable[[], object]) -> None:
        super().load_spilled(position, done)
        self.fetched(position)


def test_a_large_message_that_is_read_at_once_is_the_answer_at_once() -> None:
    world, log = World(), NearLog(0)
    world.broker.vhosts["/"].queues["q"] = filled(log)
    peer = world.peer()
    peer.send(m.BasicGet(queue="q", no_ack=True))
    assert peer.bodies() == [b"0"]
