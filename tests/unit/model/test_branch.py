"""A branch counts what it has to do, and says which kind of refusal its errors are."""

from __future__ import annotations

import pytest

from harebell.base.errors import ErrorKind
from harebell.model.branch import Branch, BranchError
from harebell.model.xa_states import Fault
from tests.unit.model.xa_world import TX, XaWorld, message


def test_what_waits_is_counted_before_and_after_the_prepare() -> None:
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
    assert branch.octets == 2 * message(b"1").footprint()
    session.end(TX)
    world.prepare()
    assert branch.pending() == (2, 1)
    assert branch.octets == 0


def test_what_is_undone_is_not_counted() -> None:
    branch = Branch(TX, "/", "guest")
    branch.publish(message(b"1"), (), 0)
    branch.undo()
    assert (branch.pending(), branch.octets) == ((0, 0), 0)


@pytest.mark.parametrize("fault", list(Fault))
def test_every_fault_is_a_refusal_of_some_kind(fault: Fault) -> None:
    error = BranchError(fault, "text")
    assert isinstance(error.kind, ErrorKind)
    assert (error.fault, error.text) == (fault, "text")
