"""Branches belong to the user that began them: others but administrators have no such branch."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.base.slices import at_once
from harebell.model.xa.branch import OPERATOR, Asker, BranchError
from harebell.model.xa.states import Fault, State, Status
from tests.unit.model.xa.xa_world import ADMIN, ANOTHER, GUEST, TX, XaWorld, message


def _worked(world: XaWorld, *, prepare: bool = False) -> None:
    """A branch of GUEST's that publishes a message, and is ended."""
    queue = world.vhost.queues.get("q") or world.queue()
    session = world.session()
    session.start(TX)
    session.publish(queue, b"new")
    session.end(TX)
    if prepare:
        at_once(world.branches.prepare("/", TX, GUEST))


CALLS: dict[str, Callable[[XaWorld, Asker], object]] = {
    "prepare": lambda world, user: at_once(world.branches.prepare("/", TX, user)),
    "commit": lambda world, user: at_once(world.branches.commit("/", TX, user, one_phase=False)),
    "commit in one phase": lambda world, user: at_once(
        world.branches.commit("/", TX, user, one_phase=True)
    ),
    "rollback": lambda world, user: at_once(world.branches.rollback("/", TX, user)),
    "forget": lambda world, user: world.branches.forget("/", TX, user),
    "timeout": lambda world, user: world.branches.timeout("/", TX, user),
    "set_timeout": lambda world, user: world.branches.set_timeout("/", TX, user, 1),
    "join": lambda world, user: world.session(user).start(TX, join=True),
    "resume": lambda world, user: world.session(user).start(TX, resume=True),
}


@pytest.mark.parametrize("prepared", [False, True], ids=["idle", "prepared"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_another_users_branch_is_as_unknown_as_one_that_there_is_not(
    call: Callable[[XaWorld, Asker], object], prepared: bool
) -> None:
    world, empty = XaWorld(), XaWorld()
    _worked(world, prepare=prepared)
    before = world.state()
    with pytest.raises(BranchError) as nothing:
        call(empty, ANOTHER)
    with pytest.raises(BranchError) as caught:
        call(world, ANOTHER)
    assert caught.value.fault is Fault.UNKNOWN_XID
    assert (caught.value.kind, caught.value.text) == (nothing.value.kind, nothing.value.text)
    assert world.state() is before
    assert world.commit(one_phase=not prepared) is Status.OK
    assert world.vhost.queues["q"].ready_count() == 1


@pytest.mark.parametrize("user", [GUEST, ADMIN, OPERATOR], ids=["owner", "administrator", "socket"])
@pytest.mark.parametrize("call", ["commit", "rollback"])
def test_the_owner_of_a_branch_and_administrators_may_end_it(call: str, user: Asker) -> None:
    world = XaWorld()
    _worked(world, prepare=True)
    assert world.branches.in_doubt("/", user) == [TX]
    CALLS[call](world, user)
    assert world.state() is State.UNKNOWN
    assert world.vhost.queues["q"].ready_count() == (1 if call == "commit" else 0)


def test_a_recovery_scan_lists_ones_own() -> None:
    world = XaWorld()
    _worked(world, prepare=True)
    assert world.branches.in_doubt("/", ANOTHER) == []
    assert world.branches.in_doubt("/", GUEST) == [TX]


def test_an_administrator_may_join() -> None:
    world = XaWorld()
    _worked(world)
    assert world.session(ADMIN).start(TX, join=True) is Status.OK


@pytest.mark.parametrize("over", [False, True], ids=["idle", "read only"])
def test_an_xid_that_another_user_has_cannot_be_started(over: bool) -> None:
    world = XaWorld()
    session = world.session()
    session.start(TX)
    session.end(TX)
    if over:
        assert world.prepare() is Status.READ_ONLY
    before = world.state()
    with pytest.raises(BranchError, match="is known already") as caught:
        world.session(ANOTHER).start(TX)
    assert caught.value.fault is Fault.ALREADY_KNOWN
    assert world.state() is before


def test_the_owner_is_known_after_a_restart() -> None:
    world = XaWorld()
    _worked(world, prepare=True)
    world.branches._branches.clear()
    assert world.branches.restore() == []
    assert world.branches.in_doubt("/", ANOTHER) == []
    with pytest.raises(BranchError, match="is not known"):
        at_once(world.branches.commit("/", TX, ANOTHER, one_phase=False))
    assert world.branches.in_doubt("/", GUEST) == [TX]
    at_once(world.branches.commit("/", TX, GUEST, one_phase=False))
    assert world.vhost.queues["q"].ready_count() == 1


def test_a_decision_keeps_the_owner() -> None:
    world = XaWorld()
    _worked(world, prepare=True)
    world.branches.decide("/", TX, commit=True)
    assert world.branches.in_doubt("/", ANOTHER) == []
    with pytest.raises(BranchError, match="is not known"):
        world.branches.forget("/", TX, ANOTHER)
    assert world.branches.forget("/", TX, GUEST).status is Status.OK


def test_another_users_work_does_not_reach_the_branch() -> None:
    world = XaWorld()
    _worked(world)
    other = world.session(ANOTHER)
    with pytest.raises(BranchError):
        other.start(TX, join=True)
    assert other.branch is None
    world.vhost.queues["q"].publish(message(b"others"))
    assert world.branches.find("/", TX) is not None
    assert world.rollback() is Status.OK
