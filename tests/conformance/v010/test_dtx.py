"""The class dtx of AMQP 0-10: branches of distributed transactions, and what XA says of them."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from harebell.wire.v010 import commands as c
from harebell.wire.v010 import controls as k
from harebell.wire.v010.amqp_0_10 import AMQP_0_10
from harebell.wire.v010.composites import Command
from harebell.wire.v010.structs import Xid
from tests.conformance.conftest import StartSite
from tests.conformance.sites import MemorySite
from tests.conformance.v010.conftest import Connect010
from tests.conformance.v010.raw import Arrived, Peer010
from tests.conformance.v010.talk import Talk

OK, ROLLED_BACK, TIMED_OUT, HEURISTIC_COMMIT, READ_ONLY = 0, 1, 2, 4, 7
PERSISTENT = 2
NOT_FOUND, ILLEGAL_STATE, INVALID, NOT_ALLOWED, ARGUMENT = 404, 409, 503, 530, 542


class Worker(Talk):
    """A session that knows the number of every command that it gets."""

    def __init__(self, peer: Peer010, channel: int = 1) -> None:
        super().__init__(peer, channel)
        self.numbers: dict[int, int] = {}
        self._arrived = 0
        take = peer.next

        def counted(*what: Any) -> Arrived:
            found = take(*what)
            if isinstance(found.value, Command) and found.channel == channel:
                self.numbers[id(found)] = self._arrived
                self._arrived += 1
            return found

        peer.next = counted  # type: ignore[method-assign]

    def status(self, command: Command) -> int:
        """The answer of XA."""
        return int(self.ask(command).status)

    def count(self, queue: str) -> int:
        """Ready messages in a queue."""
        return int(self.ask(c.QueueQuery(queue)).message_count)

    def in_doubt(self) -> list[Any]:
        """What a recovery lists."""
        found = self.ask(c.DtxRecover()).in_doubt
        sized = [len(each.data).to_bytes(4) + each.data for each in found]
        return [AMQP_0_10.read_struct32(each, 0, len(each))[0] for each in sized]

    def take(self, queue: str, tag: str = "swap") -> bytes:
        """Get a message, and accept it."""
        self.subscribe(queue, tag, 1)
        (found,) = self.deliveries()
        number = self.numbers[id(found)]
        self.do(c.MessageCancel(tag), c.MessageAccept(((number, number),)))
        return found.body

    def put(self, queue: str, body: bytes) -> None:
        """Transfer a persistent message."""
        self.publish("", body, routing_key=queue, delivery_mode=PERSISTENT)

    def work(self, queue: str, xid: Xid) -> None:
        """A branch that takes `old` from the queue, puts `new` there, and is ended."""
        self.put(queue, b"old")
        assert self.status(c.DtxStart(xid)) == OK
        assert self.take(queue) == b"old"
        self.put(queue, b"new")
        assert self.status(c.DtxEnd(xid)) == OK


def new_xid() -> Xid:
    """An xid that no other test has: the broker behind the socket is shared."""
    return Xid(0, uuid.uuid4().bytes, b"branch")


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def worker(connect010: Connect010, name: str) -> Worker:
    """A session that has selected dtx, and a queue of its own."""
    found = Worker(connect010().open().attach())
    found.do(c.QueueDeclare(name, exclusive=True, auto_delete=True), c.DtxSelect())
    return found


@pytest.fixture
def other(connect010: Connect010) -> Worker:
    """A session of another connection."""
    return Worker(connect010().open().attach("other"))


@pytest.mark.parametrize("prepared", [False, True])
def test_a_commit_does_the_work(worker: Worker, other: Worker, name: str, prepared: bool) -> None:
    xid = new_xid()
    worker.work(name, xid)
    assert worker.count(name) == 0
    if prepared:
        assert other.status(c.DtxPrepare(xid)) == OK
    assert other.status(c.DtxCommit(xid, one_phase=not prepared)) == OK
    assert worker.count(name) == 1
    assert worker.take(name) == b"new"


@pytest.mark.parametrize("prepared", [False, True])
def test_a_rollback_undoes_it(worker: Worker, other: Worker, name: str, prepared: bool) -> None:
    xid = new_xid()
    worker.work(name, xid)
    if prepared:
        assert other.status(c.DtxPrepare(xid)) == OK
    assert other.status(c.DtxRollback(xid)) == OK
    assert worker.take(name) == b"old"
    assert worker.count(name) == 0


def test_work_outside_of_a_branch_is_not_transactional(worker: Worker, name: str) -> None:
    xid = new_xid()
    worker.status(c.DtxStart(xid))
    worker.put(name, b"in")
    assert worker.status(c.DtxEnd(xid, suspend=True)) == OK
    worker.put(name, b"out")
    assert worker.count(name) == 1
    assert worker.status(c.DtxStart(xid, resume=True)) == OK
    worker.put(name, b"in too")
    worker.status(c.DtxEnd(xid))
    assert worker.status(c.DtxCommit(xid, one_phase=True)) == OK
    assert [worker.take(name) for _ in range(3)] == [b"out", b"in", b"in too"]


def test_two_sessions_join_in_one_branch(worker: Worker, other: Worker, name: str) -> None:
    other.do(c.DtxSelect(), c.QueueDeclare(f"{name}-2", auto_delete=True, exclusive=True))
    xid = new_xid()
    worker.status(c.DtxStart(xid))
    assert other.status(c.DtxStart(xid, join=True)) == OK
    worker.put(name, b"1")
    other.put(f"{name}-2", b"2")
    worker.status(c.DtxEnd(xid))
    other.status(c.DtxEnd(xid))
    assert worker.status(c.DtxCommit(xid, one_phase=True)) == OK
    assert (worker.count(name), other.count(f"{name}-2")) == (1, 1)


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        (c.DtxStart, INVALID, "has not selected distributed transactions"),
        (c.DtxEnd, INVALID, "has not selected distributed transactions"),
        (c.DtxPrepare, NOT_FOUND, "is not known"),
        (c.DtxCommit, NOT_FOUND, "is not known"),
        (c.DtxRollback, NOT_FOUND, "is not known"),
        (c.DtxForget, NOT_FOUND, "is not known"),
        (c.DtxGetTimeout, NOT_FOUND, "is not known"),
        (c.DtxSetTimeout, NOT_FOUND, "is not known"),
    ],
)
def test_without_select_and_without_a_branch_there_is_nothing_to_do(
    other: Worker, command: Any, code: int, text: str
) -> None:
    other.fails(command(new_xid()), code, text)


def test_an_xid_is_started_once(worker: Worker, other: Worker) -> None:
    xid = new_xid()
    worker.status(c.DtxStart(xid))
    other.do(c.DtxSelect())
    other.fails(c.DtxStart(xid), NOT_ALLOWED, "is known already")


@pytest.mark.parametrize("flag", ["join", "resume"])
def test_an_unknown_branch_cannot_be_continued(worker: Worker, flag: str) -> None:
    worker.fails(c.DtxStart(new_xid(), **{flag: True}), NOT_FOUND, "is not known")


def test_flags_that_exclude_each_other_are_refused(worker: Worker, other: Worker) -> None:
    worker.fails(
        c.DtxStart(new_xid(), join=True, resume=True), INVALID, "join and resume exclude each other"
    )
    other.do(c.DtxSelect())
    xid = new_xid()
    other.status(c.DtxStart(xid))
    other.fails(
        c.DtxEnd(xid, fail=True, suspend=True), INVALID, "suspend and fail exclude each other"
    )


def test_a_branch_that_is_not_associated_cannot_be_ended(worker: Worker) -> None:
    worker.fails(c.DtxEnd(new_xid()), ILLEGAL_STATE, "not associated with xid")


@pytest.mark.parametrize("command", [c.DtxPrepare, c.DtxCommit, c.DtxRollback, c.DtxForget])
def test_a_branch_that_is_worked_on_is_not_completed(
    worker: Worker, other: Worker, command: Any
) -> None:
    xid = new_xid()
    worker.status(c.DtxStart(xid))
    other.fails(command(xid), ILLEGAL_STATE, "it is active")


@pytest.mark.parametrize("prepared", [False, True])
def test_the_phases_of_a_commit_are_checked(
    worker: Worker, other: Worker, name: str, prepared: bool
) -> None:
    xid = new_xid()
    worker.work(name, xid)
    if prepared:
        worker.status(c.DtxPrepare(xid))
    state = "it is prepared" if prepared else "it is idle"
    other.fails(c.DtxCommit(xid, one_phase=prepared), ILLEGAL_STATE, state)
    assert worker.status(c.DtxRollback(xid)) == OK


def test_a_failure_rolls_back_and_says_so(worker: Worker, name: str) -> None:
    xid = new_xid()
    worker.put(name, b"old")
    worker.status(c.DtxStart(xid))
    worker.take(name)
    assert worker.status(c.DtxEnd(xid, fail=True)) == ROLLED_BACK
    assert worker.count(name) == 1
    assert worker.status(c.DtxPrepare(xid)) == ROLLED_BACK
    assert worker.status(c.DtxCommit(xid, one_phase=True)) == ROLLED_BACK


@pytest.mark.parametrize("suspended", [False, True])
def test_a_session_that_ends_makes_its_branches_fail(
    connect010: Connect010, other: Worker, name: str, suspended: bool
) -> None:
    other.do(c.QueueDeclare(name, exclusive=True, auto_delete=True))
    worker = Worker(connect010().open().attach("lost"))
    worker.do(c.DtxSelect())
    xid = new_xid()
    worker.status(c.DtxStart(xid))
    worker.put("amq.none-is-there", b"x")
    if suspended:
        worker.status(c.DtxEnd(xid, suspend=True))
    worker.peer.send(k.SessionDetach(b"lost"))
    worker.peer.expect(k.SessionDetached)
    assert other.status(c.DtxPrepare(xid)) == ROLLED_BACK
    assert other.status(c.DtxRollback(xid)) == OK


def test_without_work_a_prepare_is_read_only(worker: Worker) -> None:
    xid = new_xid()
    worker.status(c.DtxStart(xid))
    worker.status(c.DtxEnd(xid))
    assert worker.status(c.DtxPrepare(xid)) == READ_ONLY


def test_a_recovery_lists_what_is_prepared(worker: Worker, name: str) -> None:
    xids = [new_xid() for _ in range(3)]
    for xid in xids:
        worker.status(c.DtxStart(xid))
        worker.put(name, b"1")
        worker.status(c.DtxEnd(xid))
    for xid in xids[:2]:
        worker.status(c.DtxPrepare(xid))
    found = worker.in_doubt()
    assert all(xid in found for xid in xids[:2])
    assert xids[2] not in found
    for xid in xids:
        assert worker.status(c.DtxRollback(xid)) == OK
    assert not any(xid in worker.in_doubt() for xid in xids)


def test_timeouts_are_told_set_and_reset(worker: Worker) -> None:
    xid = new_xid()
    worker.status(c.DtxStart(xid))
    assert worker.ask(c.DtxGetTimeout(xid)).timeout == 60
    worker.do(c.DtxSetTimeout(xid, 200))
    assert worker.ask(c.DtxGetTimeout(xid)).timeout == 200
    worker.do(c.DtxSetTimeout(xid, 0))
    assert worker.ask(c.DtxGetTimeout(xid)).timeout == 60
    worker.status(c.DtxEnd(xid))
    worker.status(c.DtxRollback(xid))


def test_a_timeout_that_is_too_long_is_refused(worker: Worker) -> None:
    xid = new_xid()
    worker.status(c.DtxStart(xid))
    worker.fails(c.DtxSetTimeout(xid, 86_401), ARGUMENT, "86400 s is the most")


def test_an_xid_that_is_too_long_is_refused(worker: Worker) -> None:
    worker.fails(c.DtxStart(Xid(0, b"x" * 65, b"")), ARGUMENT, "has 65 octets, and 64 is the most")


def test_a_branch_that_takes_too_long_is_rolled_back(
    memory010: Connect010, memory: MemorySite
) -> None:
    worker = Worker(memory010().open().attach())
    worker.do(c.QueueDeclare("q"), c.DtxSelect())
    xid = new_xid()
    worker.put("q", b"old")
    worker.status(c.DtxStart(xid))
    worker.take("q")
    worker.do(c.DtxSetTimeout(xid, 2))
    memory.pass_time(3)
    assert worker.count("q") == 1
    assert worker.status(c.DtxEnd(xid)) == TIMED_OUT
    assert worker.status(c.DtxRollback(xid)) == TIMED_OUT


def test_the_manager_is_told_of_a_decision_and_forgets_it(
    memory010: Connect010, memory: MemorySite
) -> None:
    worker = Worker(memory010().open().attach())
    worker.do(c.QueueDeclare("q"), c.DtxSelect())
    xid = new_xid()
    worker.work("q", xid)
    worker.status(c.DtxPrepare(xid))
    (branch,) = memory.broker.branches.of("/")
    memory.broker.branches.decide("/", branch.xid, commit=True)
    assert worker.status(c.DtxRollback(xid)) == HEURISTIC_COMMIT
    assert worker.in_doubt() == [xid]
    worker.do(c.DtxForget(xid))
    assert worker.in_doubt() == []
    assert worker.take("q") == b"new"


@pytest.mark.parametrize("both", [(c.TxSelect, c.DtxSelect), (c.DtxSelect, c.TxSelect)])
def test_a_session_has_one_kind_of_transactions(other: Worker, both: Any) -> None:
    first, second = both
    other.do(first())
    other.fails(second(), ILLEGAL_STATE, "transactional already")


def test_tx_commit_is_no_way_to_commit_a_branch(worker: Worker) -> None:
    worker.status(c.DtxStart(new_xid()))
    worker.fails(c.TxCommit(), ILLEGAL_STATE, "not transactional")


@pytest.mark.parametrize("commit", [True, False])
def test_a_prepared_branch_outlives_the_broker(start_site: StartSite, commit: bool) -> None:
    site = start_site()
    worker = Worker(Peer010(site, site.connect()).open().attach())
    worker.do(c.QueueDeclare("q", durable=True), c.DtxSelect())
    xid = new_xid()
    worker.work("q", xid)
    assert worker.status(c.DtxPrepare(xid)) == OK
    site.process.kill()
    site.process.wait()
    again = start_site()
    peer = Peer010(again, again.connect())
    other = Worker(peer.open().attach())
    assert other.in_doubt() == [xid]
    assert other.count("q") == 0
    if commit:
        assert other.status(c.DtxCommit(xid)) == OK
    else:
        assert other.status(c.DtxRollback(xid)) == OK
    assert other.take("q") == (b"new" if commit else b"old")
    assert other.count("q") == 0
    peer.close()
    again.close()
