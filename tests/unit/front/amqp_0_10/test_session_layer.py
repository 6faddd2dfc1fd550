"""The session layer: commands complete in order, when their commit is on disk, and are replayed."""

from __future__ import annotations

from harebell.front.limits import HEADERS_BYTES_PER_UNIT
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from harebell.wire.v010 import structs as s
from tests.conformance.v010.raw import assembly
from tests.unit.front.amqp_0_9_1.world import World
from tests.unit.front.amqp_0_10.peer import SessionPeer

DURABLE = c.QueueDeclare("q", durable=True)
SYNC = c.ExecutionSync()


def completed(last: int) -> k.SessionCompleted:
    return k.SessionCompleted(((0, last),))


def test_the_completions_of_a_turn_are_one_control() -> None:
    peer = SessionPeer(World()).open().attach()
    assert peer.ask(SYNC, SYNC, SYNC) == [completed(2)]


def test_a_command_is_complete_when_its_commit_is_on_disk() -> None:
    world = World(slow=True)
    peer = SessionPeer(world).open().attach()
    assert peer.ask(DURABLE) == []
    world.commit()
    assert peer.taken() == [completed(0)]


def test_a_command_behind_one_that_waits_for_a_commit_completes_with_it() -> None:
    world = World(slow=True)
    peer = SessionPeer(world).open().attach()
    assert peer.ask(SYNC, DURABLE, SYNC) == [completed(0)]
    world.commit()
    assert peer.taken() == [completed(2)]


def test_completions_that_the_peer_knows_are_not_reported_again() -> None:
    peer = SessionPeer(World()).open().attach()
    peer.ask(SYNC, SYNC)
    peer.ask(k.SessionKnownCompleted(((0, 1),)))
    assert peer.ask(SYNC) == [k.SessionCompleted(((2, 2),))]


def test_a_command_that_was_executed_before_the_session_came_back_is_not_executed_again() -> None:
    world = World()
    peer = SessionPeer(world).open().attach(timeout=60)
    peer.ask(c.QueueDeclare("q"))
    publish = assembly(c.MessageTransfer(""), [], b"once", 1, False, 65535)
    peer.ask(k.SessionDetach(b"s"))
    peer.ask(k.SessionAttach(b"s"))
    # The peer did not get the completion: it sends the command with its old number.
    peer.ask(k.SessionCommandPoint(0, 0), c.QueueDeclare("other"))
    vhost = world.broker.vhosts["/"]
    assert set(vhost.queues) == {"q"}
    assert peer.give(publish)
    assert peer.connection.channels[1].received == 2


def test_commands_that_the_peer_has_not_received_are_sent_again() -> None:
    peer = SessionPeer(World()).open().attach(timeout=60)
    (result, _) = peer.ask(c.QueueQuery("q"))
    assert isinstance(result, c.ExecutionResult)
    peer.ask(k.SessionDetach(b"s"))
    flush = k.SessionFlush(expected=True, confirmed=True, completed=True)
    assert peer.ask(k.SessionAttach(b"s")) == [k.SessionAttached(b"s"), flush]
    answers = peer.ask(k.SessionExpected(((0, 0),)))
    assert answers[:2] == [k.SessionCommandPoint(0, 0), result]


def test_a_completion_of_a_command_that_was_not_sent_ends_the_session() -> None:
    peer = SessionPeer(World()).open().attach()
    exception, detach = peer.ask(k.SessionCompleted(((4, 5),)))
    assert isinstance(exception, c.ExecutionException)
    assert exception.description == "invalid-argument: commands 4 to 5 were not sent"
    assert detach == k.SessionDetach(b"s")


def test_a_gap_counts_its_commands_as_executed() -> None:
    peer = SessionPeer(World()).open().attach()
    peer.ask(SYNC)
    assert peer.ask(k.SessionGap(((1, 3),))) == [completed(3)]


def test_a_session_without_a_timeout_ends_with_its_channel() -> None:
    world = World()
    peer = SessionPeer(world).open().attach()
    peer.ask(k.SessionDetach(b"s"))
    assert not world.registry.named_sessions
    peer.attach(timeout=60).ask(k.SessionDetach(b"s"))
    assert len(world.registry.named_sessions) == 1


def test_long_headers_cost_the_work_of_their_conversion() -> None:
    world = World()
    peer = SessionPeer(world).open().attach()
    work = world.registry.work
    spent = []
    for size in (100, 40_000):
        before = work.spent
        headers = s.MessageProperties(application_headers={"k": "v" * size})
        peer.give(assembly(c.MessageTransfer(""), [headers], b"", 1, False, 65535))
        spent.append(work.spent - before)
    assert spent[1] - spent[0] >= 40_000 // HEADERS_BYTES_PER_UNIT
