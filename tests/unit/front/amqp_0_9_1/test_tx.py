"""Transactions: nothing happens before commit, and nothing at all after rollback."""

from __future__ import annotations

import pytest

from harebell.model.queue.contract import Queue
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.unit.front.amqp_0_9_1.world import OctetPeer, World, publish
from tests.unit.model.things import rest


def transactional(world: World) -> OctetPeer:
    peer = world.peer()
    peer.ask(m.QueueDeclare("q"))
    assert peer.ask(m.TxSelect()) == m.TxSelectOk()
    return peer


def test_publishes_wait_for_the_commit() -> None:
    world = World()
    peer = transactional(world)
    queue = world.broker.vhosts["/"].queues["q"]
    peer.give(publish(b"1") + publish(b"2"))
    assert queue.ready_count() == 0
    assert peer.ask(m.TxCommit()) == m.TxCommitOk()
    assert queue.ready_count() == 2
    assert peer.ask(m.TxCommit()) == m.TxCommitOk()
    assert queue.ready_count() == 2


def test_a_rollback_forgets_publishes_and_makes_acks_undone() -> None:
    world = World()
    peer = transactional(world)
    queue = world.broker.vhosts["/"].queues["q"]
    world.peer().give(publish(b"kept"))
    peer.give(publish(b"lost"))
    peer.send(m.BasicGet("q"))
    peer.frames()
    peer.send(m.BasicAck(1))
    assert queue.unacked == 1
    assert peer.ask(m.TxRollback()) == m.TxRollbackOk()
    peer.send(m.BasicAck(1))
    assert peer.ask(m.TxCommit()) == m.TxCommitOk()
    assert (queue.ready_count(), queue.unacked) == (0, 0)


def test_rejections_take_effect_at_the_commit() -> None:
    world = World()
    peer = transactional(world)
    queue = world.broker.vhosts["/"].queues["q"]
    world.peer().give(publish(b"1") + publish(b"2"))
    for _ in range(2):
        peer.send(m.BasicGet("q"))
    peer.send(m.BasicReject(1, requeue=True), m.BasicNack(2, requeue=False))
    peer.frames()
    assert (queue.ready_count(), queue.unacked) == (0, 2)
    peer.ask(m.TxCommit())
    assert (queue.ready_count(), queue.unacked) == (1, 0)


def test_a_return_goes_out_before_commit_ok() -> None:
    peer = transactional(World())
    peer.give(publish(b"x", key="nowhere", mandatory=True))
    assert peer.frames() == []
    peer.send(m.TxCommit())
    names = [type(method).__name__ for method in peer.methods()]
    assert names == ["BasicReturn", "TxCommitOk"]


def test_a_channel_that_closes_rolls_back() -> None:
    world = World()
    peer = transactional(world)
    world.peer().give(publish(b"1"))
    peer.send(m.BasicGet("q"))
    peer.frames()
    peer.send(m.BasicAck(1))
    peer.give(publish(b"lost"))
    peer.ask(m.ChannelClose(200, "done"))
    queue = world.broker.vhosts["/"].queues["q"]
    assert (queue.ready_count(), queue.unacked) == (1, 0)


def test_a_queue_that_went_before_the_commit_gets_nothing() -> None:
    world = World()
    peer = transactional(world)
    peer.give(publish(b"1"))
    world.peer().ask(m.QueueDelete("q"))
    assert peer.ask(m.TxCommit()) == m.TxCommitOk()
    assert world.gauge.used == 0


@pytest.mark.parametrize("method", [m.TxCommit(), m.TxRollback()])
def test_without_select_there_is_no_transaction(method: m.Method) -> None:
    answer = World().peer().ask(method)
    assert isinstance(answer, m.ChannelClose)
    assert answer.reply_text == "PRECONDITION_FAILED - channel is not transactional"


def test_a_confirming_channel_cannot_be_transactional() -> None:
    peer = World().peer()
    peer.ask(m.ConfirmSelect())
    answer = peer.ask(m.TxSelect())
    assert isinstance(answer, m.ChannelClose)
    assert answer.reply_text == "PRECONDITION_FAILED - cannot switch from confirm to tx mode"


KEPT = BasicProperties(delivery_mode=2)


def slowly(world: World) -> OctetPeer:
    """A transactional peer with a durable queue "d" that has one message."""
    peer = world.peer()
    peer.send(m.QueueDeclare("d", durable=True), m.QueueDeclare("q"))
    peer.give(publish(b"old", "d", properties=KEPT))
    peer.send(m.TxSelect())
    world.commit()
    peer.methods()
    return peer


def test_a_commit_with_something_durable_is_answered_when_it_is_on_disk() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.give(publish(b"1", "d", properties=KEPT))
    assert not world.store.commit.urgent
    peer.send(m.TxCommit())
    assert peer.methods() == []
    assert world.store.commit.urgent
    world.commit()
    assert peer.methods() == [m.TxCommitOk()]


@pytest.mark.parametrize("refusal", [m.BasicAck(1), m.BasicReject(1, False)])
def test_a_commit_of_an_acknowledgement_waits_for_the_disk_too(refusal: m.Method) -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.send(m.BasicGet("d"))
    peer.frames()
    peer.send(refusal)
    peer.send(m.TxCommit())
    assert peer.methods() == []
    world.commit()
    assert peer.methods() == [m.TxCommitOk()]


def test_a_commit_of_transient_things_waits_for_nothing() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.give(publish(b"1", "q", properties=KEPT) + publish(b"2", "d"))
    assert peer.ask(m.TxCommit()) == m.TxCommitOk()


def test_a_commit_for_a_queue_that_is_gone_waits_for_nothing() -> None:
    world = World(slow=True)
    peer = slowly(world)
    peer.send(m.BasicGet("d"))
    peer.frames()
    peer.send(m.BasicAck(1))
    world.peer().send(m.QueueDelete("d"))
    world.commit()
    assert peer.ask(m.TxCommit()) == m.TxCommitOk()


def _joint(world: World) -> bool:
    """Whether what changed since the last look has to outlive a crash as a whole."""
    commit = world.broker.commit
    joint, commit.joint = commit.joint, False
    return bool(joint)


def test_a_crash_must_keep_several_changes_of_a_transaction_together() -> None:
    world = World()
    peer = transactional(world)
    peer.give(publish(b"1") + publish(b"2"))
    peer.ask(m.TxCommit())
    assert _joint(world)
    peer.send(m.BasicGet("q"))
    peer.frames()
    peer.send(m.BasicAck(1))
    peer.give(publish(b"3"))
    peer.ask(m.TxCommit())
    assert _joint(world)
    peer.send(m.BasicGet("q"))
    peer.frames()
    # It may go on to a queue of dead letters.
    peer.send(m.BasicReject(2, requeue=False))
    peer.ask(m.TxCommit())
    assert _joint(world)


def test_one_change_alone_needs_nothing_to_keep_it_together() -> None:
    world = World()
    peer = transactional(world)
    world.peer().give(publish(b"of nobody's transaction") * 2)
    peer.give(publish(b"1"))
    peer.ask(m.TxCommit())
    peer.give(publish(b"2") + publish(b"3"))
    peer.ask(m.TxRollback())
    peer.send(m.BasicGet("q"))
    peer.frames()
    peer.send(m.BasicAck(1))
    peer.ask(m.TxCommit())
    assert not _joint(world)


def test_a_commit_may_be_refused_for_a_mandatory_message_without_a_queue() -> None:
    world = World()
    peer = world.peer()
    peer.connection.capabilities = {"tx_mandatory"}
    peer.ask(m.QueueDeclare("q"))
    peer.ask(m.TxSelect())
    queue = world.broker.vhosts["/"].queues["q"]
    world.peer().give(publish(b"1"))
    peer.send(m.BasicGet("q"))
    peer.frames()
    peer.send(m.BasicAck(1))
    peer.give(publish(b"x", key="nowhere", mandatory=True) + publish(b"y", key="q", mandatory=True))
    closed = peer.ask(m.TxCommit())
    assert isinstance(closed, m.ChannelClose)
    assert (closed.reply_code, closed.reply_text) == (
        312,
        "NO_ROUTE - 1 of 2 messages reach no queue, with routing key 'nowhere' at exchange ''; "
        "nothing was committed",
    )
    assert (queue.ready_count(), queue.unacked) == (1, 0)


def test_a_message_that_is_not_mandatory_may_have_no_queue_in_a_transaction() -> None:
    peer = World().peer()
    peer.connection.capabilities = {"tx_mandatory"}
    peer.ask(m.TxSelect())
    peer.give(publish(b"x", key="nowhere"))
    assert peer.ask(m.TxCommit()) == m.TxCommitOk()


@pytest.mark.parametrize("budget", [1, 20, 100, 300])
def test_a_small_commit_has_no_turn_of_another_user_in_it_whatever_the_budget(budget: int) -> None:
    world = World()
    peer = transactional(world)
    queue = world.broker.vhosts["/"].queues["q"]
    world.peer().give(b"".join(publish(b"old") for _ in range(100)))
    for _ in range(100):
        peer.send(m.BasicGet("q"))
    peer.frames()
    peer.send(m.BasicAck(100, multiple=True))
    peer.give(b"".join(publish(b"new") for _ in range(100)))
    world.limit(budget)
    peer.send(m.TxCommit())
    # After any of these turns the store may close its commit, and the power may fail.
    seen = {(queue.ready_count(), queue.unacked)}
    while world.woken:
        world.next_turn()
        seen.add((queue.ready_count(), queue.unacked))
    assert seen <= {(0, 100), (100, 0)}
    assert peer.methods() == [m.TxCommitOk()]
    assert rest(queue) == [b"new"] * 100


def with_a_large_transaction(world: World) -> tuple[OctetPeer, Queue]:
    """A peer that has published 3000 messages in a transaction, and their queue."""
    peer = transactional(world)
    peer.give(b"".join(publish(b"%d" % number) for number in range(3000)))
    world.limit(300)
    return peer, world.broker.vhosts["/"].queues["q"]


def test_a_large_commit_goes_in_slices_and_what_follows_waits_for_its_end() -> None:
    world = World()
    peer, queue = with_a_large_transaction(world)
    peer.send(m.TxCommit(), m.QueueDeclare("q", passive=True))
    assert 0 < queue.ready_count() < 3000
    assert world.store.commit.pinned
    assert peer.methods() == []
    assert world.turns() > 3
    assert peer.methods() == [m.TxCommitOk(), m.QueueDeclareOk("q", 3000, 0)]
    assert not world.store.commit.pinned
    assert rest(queue) == [b"%d" % number for number in range(3000)]


def test_a_large_commit_is_carried_out_when_its_channel_or_connection_is_gone() -> None:
    world = World()
    peer, queue = with_a_large_transaction(world)
    peer.send(m.TxCommit())
    peer.connection.eof()
    world.turns()
    assert queue.ready_count() == 3000
    assert not world.store.commit.pinned
    assert world.gauge.uncommitted == 0


def test_two_large_commits_go_one_after_the_other() -> None:
    world = World()
    peers = [transactional(world), transactional(world)]
    queue = world.broker.vhosts["/"].queues["q"]
    for name, peer in zip((b"a", b"b"), peers, strict=True):
        peer.give(b"".join(publish(b"%b%d" % (name, number)) for number in range(1000)))
    world.limit(300)
    for peer in peers:
        peer.send(m.TxCommit())
    world.turns()
    assert [body[:1] for body in rest(queue)] == [b"a"] * 1000 + [b"b"] * 1000
    assert all(peer.methods() == [m.TxCommitOk()] for peer in peers)


def test_a_large_commit_that_is_refused_closes_the_channel_in_whatever_turn() -> None:
    world = World()
    peer, other = world.peer(), transactional(world)
    peer.ask(m.QueueDeclare("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"}))
    peer.ask(m.TxSelect())
    peer.give(b"".join(publish(b"x", "full") for _ in range(500)))
    other.give(b"".join(publish(b"x") for _ in range(3000)))
    world.limit(300)
    other.send(m.TxCommit())
    peer.send(m.TxCommit())
    assert peer.methods() == []
    world.turns()
    (closed,) = peer.methods()
    assert isinstance(closed, m.ChannelClose)
    assert (closed.reply_code, closed.class_id, closed.method_id) == (406, 90, 20)
    assert other.methods() == [m.TxCommitOk()]


def with_many_acks(world: World) -> tuple[OctetPeer, Queue]:
    """A peer that has acknowledged 1000 messages in a transaction, half of them one by one."""
    peer = transactional(world)
    world.peer().give(b"".join(publish(b"%d" % number) for number in range(1000)))
    for _ in range(1000):
        peer.send(m.BasicGet("q"))
    peer.frames()
    peer.give(b"".join(publish(b"lost") for _ in range(1000)))
    for tag in range(1, 501):
        peer.send(m.BasicAck(tag))
    peer.send(m.BasicAck(1000, multiple=True))
    world.limit(100)
    return peer, world.broker.vhosts["/"].queues["q"]


def test_a_large_rollback_goes_in_slices_and_what_follows_waits_for_its_end() -> None:
    world = World()
    peer, queue = with_many_acks(world)
    peer.send(m.TxRollback(), m.QueueDeclare("q", passive=True))
    assert peer.methods() == []
    assert world.turns() > 3
    assert peer.methods() == [m.TxRollbackOk(), m.QueueDeclareOk("q", 0, 0)]
    assert (queue.unacked, world.gauge.uncommitted) == (1000, 0)
    peer.send(m.BasicNack(1000, multiple=True, requeue=True), m.TxCommit())
    world.turns()
    assert rest(queue) == [b"%d" % number for number in range(1000)]


def test_deliveries_not_reached_by_a_rollback_come_back_when_their_connection_is_gone() -> None:
    world = World()
    peer, queue = with_many_acks(world)
    peer.send(m.TxRollback())
    world.next_turn()
    peer.connection.eof()
    world.turns()
    assert (queue.unacked, world.gauge.uncommitted) == (0, 0)
    assert rest(queue) == [b"%d" % number for number in range(1000)]
