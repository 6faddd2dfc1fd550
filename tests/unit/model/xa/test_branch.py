"""A branch counts what it has to do, and says which kind of refusal its errors are."""

from __future__ import annotations

import pytest

from harebell.base.errors import ErrorKind
from harebell.base.gauge import Gauge
from harebell.base.slices import at_once
from harebell.model.xa.branch import Branch, BranchError
from harebell.model.xa.states import Call, Fault
from tests.unit.model.xa.xa_world import GUEST, TX, XaWorld, message


def test_waiting_messages_are_counted_before_and_after_the_prepare() -> None:
    world = XaWorld()
    queue = world.queue()
    queue.publish(message(b"old"))
    session = world.session()
    session.start(TX)
    branch = session.work_on()
    assert branch.pending() == (0, 0)
    session.take(queue)
    session.publish(queue, b"1")
    session.publish(queue, b"2")
    assert branch.pending() == (2, 1)
    assert branch.byte_count == 2 * message(b"1").footprint()
    session.end(TX)
    world.prepare()
    assert branch.pending() == (2, 1)
    assert branch.byte_count == 0


def test_undone_work_is_not_counted() -> None:
    gauge = Gauge()
    branch = Branch(TX, "/", "guest", gauge)
    branch.publish(message(b"1"), (), 0)
    assert gauge.used == branch.byte_count > 0
    branch.undo()
    assert (branch.pending(), branch.byte_count, gauge.used) == ((0, 0), 0, 0)


@pytest.mark.parametrize("end", ["commit", "prepare", "rollback", "timeout", "vhost"])
def test_memory_is_given_back_however_a_branch_ends(end: str) -> None:
    world = XaWorld()
    vhost = world.broker.add_vhost("v")
    branch = world.branches.begin("v", TX, GUEST)
    world.branches.apply(branch, Call.LAST_END)
    branch.publish(message(b"1"), (vhost.declare_queue("q"),), 0)
    gauge = world.broker.gauge
    assert gauge.used == branch.byte_count
    if end == "commit":
        at_once(world.branches.commit("v", TX, GUEST, one_phase=True))
        vhost.queues["q"].purge()
    elif end == "prepare":
        at_once(world.branches.prepare("v", TX, GUEST))
        at_once(world.branches.rollback("v", TX, GUEST))
    elif end == "rollback":
        at_once(world.branches.rollback("v", TX, GUEST))
    elif end == "timeout":
        world.pass_time(60)
    else:
        world.broker.delete_vhost(vhost)
    assert (gauge.used, branch.byte_count) == (0, 0)


@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_is_a_refusal_of_some_kind(fault: Fault) -> None:
    error = BranchError(fault, "text")
    assert isinstance(error.kind, ErrorKind)
    assert (error.fault, error.text) == (fault, "text")
