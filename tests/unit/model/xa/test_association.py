"""A session and its branches: start, join, suspend, resume, end, and what a lost session means."""

from __future__ import annotations

import pytest

from harebell.model.xa.association import Association
from harebell.model.xa.branch import BranchError
from harebell.model.xa.states import Fault, State, Status
from tests.unit.model.things import rest
from tests.unit.model.xa.xa_world import GUEST, OTHER, TX, XaWorld, message


def _fault(error: pytest.ExceptionInfo[BranchError]) -> Fault:
    return error.value.fault


def test_nothing_is_possible_before_select() -> None:
    session = Association(XaWorld().branches, "/", GUEST)
    for call in (session.start, session.end):
        with pytest.raises(BranchError, match="has not selected") as caught:
            call(TX)
        assert _fault(caught) is Fault.INVALID


def test_an_xid_is_started_once() -> None:
    world = XaWorld()
    first = world.session()
    first.start(TX)
    for session in (first, world.session()):
        with pytest.raises(BranchError, match="is known already") as caught:
            session.start(TX)
        assert _fault(caught) is Fault.ALREADY_KNOWN


def test_join_and_resume_exclude_each_other() -> None:
    with pytest.raises(BranchError, match="join and resume exclude each other") as caught:
        XaWorld().session().start(TX, join=True, resume=True)
    assert _fault(caught) is Fault.INVALID


def test_suspend_and_fail_exclude_each_other() -> None:
    session = XaWorld().session()
    session.start(TX)
    with pytest.raises(BranchError, match="suspend and fail exclude each other") as caught:
        session.end(TX, fail=True, suspend=True)
    assert _fault(caught) is Fault.INVALID


def test_an_unknown_branch_cannot_be_joined_or_resumed() -> None:
    session = XaWorld().session()
    for flag in ("join", "resume"):
        with pytest.raises(BranchError, match="is not known") as caught:
            session.start(TX, **{flag: True})
        assert _fault(caught) is Fault.UNKNOWN_XID


def test_a_session_works_on_one_branch_at_a_time() -> None:
    world = XaWorld()
    session = world.session()
    session.start(TX)
    with pytest.raises(BranchError, match="works on xid 0:7478:31") as caught:
        session.start(OTHER)
    assert _fault(caught) is Fault.ILLEGAL_STATE
    assert world.state(OTHER) is State.UNKNOWN


def test_only_the_session_that_suspended_resumes() -> None:
    world = XaWorld()
    session, other = world.session(), world.session()
    session.start(TX)
    with pytest.raises(BranchError, match="not suspended here"):
        other.start(TX, resume=True)
    assert session.end(TX, suspend=True) is Status.OK
    assert session.branch is None
    with pytest.raises(BranchError, match="not suspended here") as caught:
        other.start(TX, resume=True)
    assert _fault(caught) is Fault.ILLEGAL_STATE
    with pytest.raises(BranchError, match="suspended here: resume it"):
        session.start(TX, join=True)
    with pytest.raises(BranchError, match="it is active"):
        world.prepare()
    assert session.start(TX, resume=True) is Status.OK
    session.end(TX)
    assert world.state() is State.IDLE


def test_other_branches_are_worked_on_while_one_is_suspended() -> None:
    world = XaWorld()
    queue = world.queue()
    session = world.session()
    session.start(TX)
    session.publish(queue, b"1")
    session.end(TX, suspend=True)
    session.start(OTHER)
    session.publish(queue, b"2")
    session.end(OTHER)
    session.start(TX, resume=True)
    session.publish(queue, b"3")
    session.end(TX)
    world.commit(OTHER, one_phase=True)
    assert rest(queue) == [b"2"]
    world.commit(one_phase=True)
    assert rest(queue) == [b"1", b"3"]


def test_a_suspended_branch_can_be_ended() -> None:
    world = XaWorld()
    session = world.session()
    session.start(TX)
    session.end(TX, suspend=True)
    with pytest.raises(BranchError, match="not associated"):
        session.end(TX, suspend=True)
    assert session.end(TX) is Status.OK
    assert world.state() is State.IDLE


def test_a_branch_that_is_not_associated_cannot_be_ended() -> None:
    world = XaWorld()
    session = world.session()
    for start in (False, True):
        if start:
            session.start(OTHER)
        with pytest.raises(BranchError, match="not associated with xid 0:7478:31") as caught:
            session.end(TX)
        assert _fault(caught) is Fault.ILLEGAL_STATE


def test_a_failure_rolls_back_at_once() -> None:
    world = XaWorld()
    queue = world.queue()
    queue.publish(message(b"old"))
    session = world.session()
    session.start(TX)
    session.take(queue)
    assert session.end(TX, fail=True) is Status.ROLLED_BACK
    assert world.state() is State.FAILED
    assert rest(queue) == [b"old"]
    assert world.prepare() is Status.ROLLED_BACK
    assert world.commit(one_phase=True) is Status.ROLLED_BACK
    assert world.state() is State.UNKNOWN


def test_others_learn_that_one_has_failed() -> None:
    world = XaWorld()
    first, second, third = (world.session() for _ in range(3))
    first.start(TX)
    second.start(TX, join=True)
    third.start(TX, join=True)
    third.end(TX, suspend=True)
    assert first.end(TX, fail=True) is Status.ROLLED_BACK
    assert world.session().start(TX, join=True) is Status.ROLLED_BACK
    assert second.end(TX, suspend=True) is Status.ROLLED_BACK
    assert third.start(TX, resume=True) is Status.ROLLED_BACK
    assert third.branch is None
    assert world.state() is State.FAILED
    assert world.rollback() is Status.OK


@pytest.mark.parametrize("suspended", [False, True])
def test_a_lost_session_makes_its_branches_fail(suspended: bool) -> None:
    world = XaWorld()
    queue = world.queue()
    queue.publish(message(b"old"))
    session = world.session()
    session.start(TX)
    session.take(queue)
    session.publish(queue, b"new")
    if suspended:
        session.end(TX, suspend=True)
    session.close()
    assert rest(queue) == [b"old"]
    assert world.prepare() is Status.ROLLED_BACK
    assert world.rollback() is Status.OK


def test_a_session_that_ended_its_work_may_go() -> None:
    world = XaWorld()
    queue = world.queue()
    session = world.session()
    session.start(TX)
    session.publish(queue, b"1")
    session.end(TX)
    session.close()
    assert world.commit(one_phase=True) is Status.OK
    assert rest(queue) == [b"1"]
