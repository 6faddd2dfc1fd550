"""Branches of distributed transactions: their work takes effect whole, when they are committed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.base.errors import ErrorKind
from harebell.base.slices import at_once
from harebell.model import limits
from harebell.model.dedup_cache import HEADER
from harebell.model.queue.contract import REJECTED, Queue
from harebell.model.transaction import REJECT, REQUEUE, REQUEUE_RETURNED
from harebell.model.xa.branch import BranchError
from harebell.model.xa.states import Fault, State, Status
from tests.unit.model.things import rest, with_headers
from tests.unit.model.xa.xa_world import GUEST, OTHER, TX, XaWorld, message


def _worked(world: XaWorld) -> None:
    """A branch that takes `old` from the queue and puts `new` there, and is ended."""
    queue = world.vhost.queues.get("q") or world.queue()
    queue.publish(message(b"old"))
    session = world.session()
    assert session.start(TX) is Status.OK
    assert session.take(queue) == b"old"
    session.publish(queue, b"new")
    assert session.end(TX) is Status.OK
    assert (queue.ready_count(), queue.unacked) == (0, 1)


@pytest.mark.parametrize("prepared", [False, True])
def test_a_commit_does_the_work(prepared: bool) -> None:
    world = XaWorld()
    _worked(world)
    if prepared:
        assert world.prepare() is Status.OK
        assert world.state() is State.PREPARED
        assert world.vhost.queues["q"].unacked == 1
    assert world.commit(one_phase=not prepared) is Status.OK
    assert world.state() is State.UNKNOWN
    assert world.vhost.queues["q"].unacked == 0
    assert rest(world.vhost.queues["q"]) == [b"new"]


@pytest.mark.parametrize("prepared", [False, True])
@pytest.mark.parametrize("committed", [False, True])
def test_exchanges_that_keep_something_hear_of_a_branch_at_its_commit(
    prepared: bool, committed: bool
) -> None:
    world = XaWorld()
    history = world.vhost.declare_exchange("history", "x-recent-history")
    size = {"x-cache-size": 9}
    once = world.vhost.declare_exchange("once", "x-message-deduplication", arguments=size)
    world.vhost.bind("history", once, "")
    queue = world.queue()
    world.vhost.bind("once", queue, "")
    session = world.session()
    session.start(TX)
    sent = with_headers({HEADER: "a"}, exchange="history")
    session.work_on().publish(sent, world.vhost.router.route(history, sent), 0)
    session.end(TX)
    if prepared:
        world.prepare()
    if committed:
        world.commit(one_phase=not prepared)
    else:
        world.rollback()
    again = with_headers({HEADER: "a"}, exchange="once")
    assert world.vhost.router.route(once, again) == (() if committed else (queue,))
    late = world.queue("late")
    world.vhost.bind("history", late, "")
    assert late.ready_count() == committed


@pytest.mark.parametrize("prepared", [False, True])
def test_a_rollback_undoes_it(prepared: bool) -> None:
    world = XaWorld()
    _worked(world)
    if prepared:
        world.prepare()
    assert world.rollback() is Status.OK
    assert world.state() is State.UNKNOWN
    queue = world.vhost.queues["q"]
    got = queue.get()
    assert got is not None
    assert (got[0].body, got[2]) == (b"old", True)
    assert queue.ready_count() == 0


def test_an_xid_can_be_used_again_once_it_is_completed() -> None:
    world = XaWorld()
    for end in (world.rollback, lambda: world.commit(one_phase=True)):
        world.vhost.delete_queue("q")
        _worked(world)
        end()
    session = world.session()
    assert session.start(TX) is Status.OK


@pytest.mark.parametrize("kind", [REJECT, REQUEUE, REQUEUE_RETURNED])
@pytest.mark.parametrize("prepared", [False, True])
def test_rejections_are_part_of_a_branch(kind: int, prepared: bool) -> None:
    world = XaWorld()
    queue = world.queue(arguments={"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "d"})
    dead = world.queue("d")
    queue.publish(message(b"1"))
    session = world.session()
    session.start(TX)
    session.take(queue, kind)
    session.end(TX)
    if prepared:
        world.prepare()
    assert (queue.ready_count(), dead.ready_count()) == (0, 0)
    world.commit(one_phase=not prepared)
    expected = (0, 1) if kind == REJECT else (1, 0)
    assert (queue.ready_count(), dead.ready_count()) == expected


def test_two_sessions_work_on_one_branch() -> None:
    world = XaWorld()
    queue = world.queue()
    first, second = world.session(), world.session()
    first.start(TX)
    assert second.start(TX, join=True) is Status.OK
    first.publish(queue, b"1")
    second.publish(queue, b"2")
    assert first.end(TX) is Status.OK
    assert world.state() is State.ACTIVE
    with pytest.raises(BranchError, match="it is active"):
        world.prepare()
    second.end(TX)
    world.prepare()
    world.commit()
    assert rest(queue) == [b"1", b"2"]


def test_without_work_a_branch_is_read_only_and_forgotten_after_a_while() -> None:
    world = XaWorld()
    session = world.session()
    session.start(TX)
    session.end(TX)
    assert world.prepare() is Status.READ_ONLY
    assert world.branches.in_doubt("/", GUEST) == []
    with pytest.raises(BranchError, match="it is read-only"):
        world.commit(one_phase=True)
    world.pass_time(limits.BRANCH_REMEMBERED_SECONDS)
    assert len(world.branches) == 0


def test_a_recovery_scan_tells_of_what_is_prepared_or_was_decided() -> None:
    world = XaWorld()
    world.queue()
    _worked(world)
    session = world.session()
    session.start(OTHER)
    session.publish(world.vhost.queues["q"], b"x")
    session.end(OTHER)
    assert world.branches.in_doubt("/", GUEST) == []
    world.prepare()
    world.prepare(OTHER)
    assert world.branches.in_doubt("/", GUEST) == [TX, OTHER]
    world.branches.decide("/", OTHER, commit=True)
    assert world.branches.in_doubt("/", GUEST) == [TX, OTHER]
    assert world.branches.in_doubt("elsewhere", GUEST) == []
    world.rollback()
    world.branches.forget("/", OTHER, GUEST)
    assert world.branches.in_doubt("/", GUEST) == []


@pytest.mark.parametrize("commit", [True, False])
def test_an_operators_decision_is_remembered_until_it_is_forgotten(commit: bool) -> None:
    world = XaWorld()
    _worked(world)
    with pytest.raises(BranchError, match="it is idle"):
        world.branches.decide("/", TX, commit=commit)
    world.prepare()
    assert world.branches.decide("/", TX, commit=commit).status is Status.OK
    queue = world.vhost.queues["q"]
    assert rest(queue) == ([b"new"] if commit else [b"old"])
    told = Status.HEURISTIC_COMMIT if commit else Status.HEURISTIC_ROLLBACK
    assert world.commit() is told
    assert world.rollback() is told
    assert rest(queue) == []
    assert world.branches.forget("/", TX, GUEST).status is Status.OK
    with pytest.raises(BranchError, match="is not known"):
        world.commit()


def test_a_full_queue_makes_the_prepare_fail() -> None:
    world = XaWorld()
    limited = {"x-max-length": 1, "x-overflow": "reject-publish"}
    queue = world.queue(arguments=limited)
    for one_phase in (False, True):
        session = world.session()
        session.start(TX)
        session.publish(queue, b"1")
        session.publish(queue, b"2")
        session.end(TX)
        if one_phase:
            assert world.commit(one_phase=True) is Status.ROLLED_BACK
        else:
            assert world.prepare() is Status.ROLLED_BACK
            assert world.rollback() is Status.OK
        assert world.state() is State.UNKNOWN
        assert queue.ready_count() == 0


@pytest.mark.parametrize("kind", ["classic", "quorum"])
def test_a_prepared_branch_is_committed_although_the_queue_is_full_by_then(kind: str) -> None:
    world = XaWorld()
    limited = {"x-max-length": 1, "x-overflow": "reject-publish", "x-queue-type": kind}
    queue = world.queue(arguments=limited)
    session = world.session()
    session.start(TX)
    session.publish(queue, b"promised")
    session.end(TX)
    assert world.prepare() is Status.OK
    taken = 0
    while not queue.publish(message(b"first")) & REJECTED:
        taken += 1
    assert world.commit() is Status.OK
    assert rest(queue) == [b"first"] * taken + [b"promised"]


def test_a_branch_that_takes_too_long_is_rolled_back() -> None:
    world = XaWorld()
    _worked(world)
    assert world.branches.timeout("/", TX, GUEST) == 60
    world.branches.set_timeout("/", TX, GUEST, 2)
    assert world.branches.timeout("/", TX, GUEST) == 2
    world.pass_time(1.9)
    assert world.state() is State.IDLE
    world.pass_time(0.2)
    assert world.state() is State.EXPIRED
    assert rest(world.vhost.queues["q"]) == [b"old"]
    assert world.prepare() is Status.TIMED_OUT
    assert world.rollback() is Status.TIMED_OUT
    assert world.state() is State.UNKNOWN


def test_a_timeout_of_zero_is_the_default_again() -> None:
    world = XaWorld()
    _worked(world)
    world.branches.set_timeout("/", TX, GUEST, 500)
    world.branches.set_timeout("/", TX, GUEST, 0)
    assert world.branches.timeout("/", TX, GUEST) == limits.BRANCH_TIMEOUT_SECONDS
    world.pass_time(limits.BRANCH_TIMEOUT_SECONDS)
    assert world.state() is State.EXPIRED
    world.pass_time(limits.BRANCH_REMEMBERED_SECONDS)
    assert world.state() is State.UNKNOWN


def test_a_timeout_that_is_too_long_is_refused() -> None:
    world = XaWorld()
    _worked(world)
    with pytest.raises(BranchError, match="86400 s is the most") as caught:
        world.branches.set_timeout("/", TX, GUEST, 86_401)
    assert caught.value.fault is Fault.BAD_VALUE
    world.branches.set_timeout("/", TX, GUEST, 86_400)


def test_a_prepared_branch_is_never_ended_by_time() -> None:
    world = XaWorld()
    _worked(world)
    world.branches.set_timeout("/", TX, GUEST, 1)
    world.prepare()
    world.pass_time(1_000_000)
    assert world.state() is State.PREPARED
    assert world.commit() is Status.OK


def test_work_that_comes_after_the_timeout_is_undone_at_once() -> None:
    world = XaWorld()
    queue = world.queue()
    queue.publish(message(b"old"))
    session = world.session()
    session.start(TX)
    world.pass_time(60)
    assert world.state() is State.EXPIRING
    session.publish(queue, b"lost")
    assert session.take(queue) == b"old"
    assert (queue.ready_count(), queue.unacked) == (1, 0)
    assert session.end(TX) is Status.TIMED_OUT
    assert world.rollback() is Status.TIMED_OUT


def test_a_time_to_live_begins_with_the_commit_of_what_was_prepared() -> None:
    world = XaWorld()
    queue = world.queue()
    session = world.session()
    session.start(TX)
    lasting = message(b"short-lived")
    lasting.due = -1_001
    session.work_on().publish(lasting, (queue,), 0)
    session.end(TX)
    world.prepare()
    world.pass_time(100)
    world.commit()
    world.pass_time(0.9)
    assert queue.ready_count() == 1
    world.pass_time(0.2)
    assert queue.ready_count() == 0


@pytest.mark.parametrize(
    "call",
    [
        lambda world: world.prepare(),
        lambda world: world.commit(),
        lambda world: world.commit(one_phase=True),
        lambda world: world.rollback(),
        lambda world: world.branches.forget("/", TX, GUEST),
        lambda world: world.branches.set_timeout("/", TX, GUEST, 1),
        lambda world: world.branches.timeout("/", TX, GUEST),
        lambda world: world.branches.decide("/", TX, commit=True),
    ],
)
def test_an_unknown_xid_is_not_found(call: Callable[[XaWorld], object]) -> None:
    with pytest.raises(BranchError, match="xid 0:7478:31 is not known") as caught:
        call(XaWorld())
    assert caught.value.fault is Fault.UNKNOWN_XID
    assert caught.value.kind is ErrorKind.NOT_FOUND


def test_there_is_a_limit_of_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BRANCHES", 1)
    world = XaWorld()
    world.session().start(TX)
    with pytest.raises(
        BranchError, match=r"cannot be started: .* one user may have 1: end"
    ) as caught:
        world.session().start(OTHER)
    assert caught.value.fault is Fault.TOO_MUCH
    assert world.state(OTHER) is State.UNKNOWN


def test_there_is_a_limit_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BRANCH_BYTES", 1_000)
    monkeypatch.setattr(limits, "BRANCH_SETTLED_MESSAGES", 1)
    world = XaWorld()
    queue = world.queue()
    session = world.session()
    session.start(TX)
    with pytest.raises(BranchError, match="publishes more than 1000 octets"):
        session.publish(queue, bytes(1_000))
    queue.publish(message(b"1"))
    queue.publish(message(b"2"))
    session.take(queue)
    with pytest.raises(BranchError, match="settles more than 1 deliveries"):
        session.take(queue)
    assert (queue.ready_count(), queue.unacked) == (1, 1)


def test_branches_go_with_their_vhost() -> None:
    world = XaWorld()
    vhost = world.broker.add_vhost("v")
    branch = world.branches.begin("v", TX, GUEST)
    branch.publish(message(b"1"), (vhost.declare_queue("q", durable=True),), 0)
    assert world.branches.find("/", TX) is None
    world.broker.delete_vhost(vhost)
    assert len(world.branches) == 0


def test_a_record_that_nobody_understands_is_told_and_stays() -> None:
    world = XaWorld()
    log = world.branches._log()
    log.append(message(b"not a record"))
    (sentence,) = world.branches.restore()
    assert "a prepared transaction at position" in sentence
    assert log.live() == 1
    assert len(world.branches) == 0


def test_a_record_that_cannot_be_read_is_an_internal_error() -> None:
    world = XaWorld()
    _worked(world)
    world.prepare()
    log = world.branches._log()
    log.settle(log.first())
    for end in (world.commit, world.rollback):
        with pytest.raises(BranchError, match="record of its work cannot be read") as caught:
            end()
        assert caught.value.fault is Fault.FAILED
        assert caught.value.kind is ErrorKind.INTERNAL_ERROR
    assert world.state() is State.PREPARED


def _branch_of_1000_publishes(world: XaWorld) -> Queue:
    """End a branch that has published so many messages to the queue that is returned."""
    queue, session = world.queue(), world.session()
    session.start(TX)
    for number in range(1000):
        session.publish(queue, b"%d" % number)
    session.end(TX)
    return queue


@pytest.mark.parametrize("one_phase", [True, False])
def test_a_small_branch_is_committed_in_one_turn(one_phase: bool) -> None:
    world = XaWorld()
    queue, session = world.queue(), world.session()
    session.start(TX)
    for number in range(100):
        session.publish(queue, b"%d" % number)
    session.end(TX)
    if not one_phase:
        world.prepare()
    committing = world.branches.commit("/", TX, GUEST, one_phase=one_phase, in_turns=True)
    turns = 0
    while next(committing, "done") != "done":
        turns += 1
        assert queue.ready_count() == 0
        assert not world.broker.store.commit.pinned
    assert turns >= 7
    assert queue.ready_count() == 100
    assert world.state() is State.UNKNOWN


def test_a_large_branch_is_prepared_and_committed_in_slices_and_nobody_comes_between() -> None:
    world = XaWorld()
    queue = _branch_of_1000_publishes(world)
    preparing = world.branches.prepare("/", TX, GUEST)
    next(preparing)
    for call in (world.prepare, world.commit, world.rollback):
        with pytest.raises(BranchError, match="is being prepared, committed or rolled back"):
            call()
    world.pass_time(10_000)
    assert at_once(preparing).status is Status.OK
    committing = world.branches.commit("/", TX, GUEST, one_phase=False, in_turns=True)
    commit = world.broker.store.commit
    turns = 0
    while next(committing, "done") != "done":
        turns += 1
        if commit.pinned:
            with pytest.raises(BranchError, match="is being prepared, committed or rolled back"):
                world.rollback()
    assert turns > 100
    assert not commit.pinned
    assert queue.ready_count() == 1000
    assert world.state() is State.UNKNOWN


def test_a_branch_whose_vhost_goes_while_it_is_prepared_is_unknown() -> None:
    world = XaWorld()
    _branch_of_1000_publishes(world)
    preparing = world.branches.prepare("/", TX, GUEST)
    next(preparing)
    world.branches.vhost_gone("/")
    with pytest.raises(BranchError, match="is not known"):
        at_once(preparing)
