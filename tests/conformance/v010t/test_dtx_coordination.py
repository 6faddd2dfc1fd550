"""The class dtx-coordination of transitional 0-10: branches are prepared and completed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.model.xa.xid import Xid
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from tests.conformance.conftest import StartSite
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.branches import (
    HEURISTIC_COMMIT,
    HEURISTIC_ROLLBACK,
    OK,
    READ_ONLY,
    ROLLED_BACK,
    TIMED_OUT,
    bodies,
    coordinate,
    end,
    in_doubt,
    new_xid,
    selected,
    start,
    work,
)
from tests.conformance.v010t.peer import Peer

Connect = Callable[[], Peer]
METHODS = {
    "commit": s.DtxCoordinationCommit,
    "forget": s.DtxCoordinationForget,
    "get-timeout": s.DtxCoordinationGetTimeout,
    "prepare": s.DtxCoordinationPrepare,
    "rollback": s.DtxCoordinationRollback,
    "set-timeout": s.DtxCoordinationSetTimeout,
}


def _at(what: str) -> str:
    return f"dtx-coordination.{what}"


@pytest.mark.rule("0-10t#199", "0-10t#182")
def test_any_session_of_the_vhost_completes_a_branch(connect: Connect, name: str) -> None:
    """The server MAY restrict who does; here the vhost is the limit."""
    worker, manager = connect().open(), connect().open()
    worker.queue(name, durable=True)
    selected(worker)
    xid = new_xid()
    work(worker, name, xid)
    assert coordinate(manager, "prepare", xid) == OK
    assert coordinate(manager, "commit", xid) == OK
    assert bodies(manager, name) == [b"new"]
    manager.ask(m.QueueDelete(queue=name))


@pytest.mark.rule("0-10t#203", "0-10t#210", "0-10t#213", "0-10t#219", "0-10t#230", "0-10t#236")
@pytest.mark.parametrize("what", list(METHODS))
@pytest.mark.parametrize("ended", [False, True])
def test_an_unknown_xid_is_not_found(peer: Peer, what: str, ended: bool) -> None:
    xid = new_xid()
    if ended:
        selected(peer)
        start(peer, xid)
        end(peer, xid)
        coordinate(peer, "rollback", xid)
    peer.send(METHODS[what](xid.encode()))
    peer.expect_channel_close(404, _at(what), str(xid), "is not known")


@pytest.mark.rule("0-10t#204", "0-10t#211", "0-10t#220", "0-10t#231")
@pytest.mark.rule("0-10t#201", "0-10t#208", "0-10t#215", "0-10t#228")
@pytest.mark.parametrize("what", ["commit", "forget", "prepare", "rollback"])
@pytest.mark.parametrize("suspended", [False, True])
def test_a_branch_that_is_worked_on_is_not_completed(
    connect: Connect, what: str, suspended: bool
) -> None:
    peer = connect().open(channels=(1, 2))
    selected(peer)
    xid = new_xid()
    start(peer, xid)
    if suspended:
        end(peer, xid, suspend=True)
    peer.send(METHODS[what](xid.encode()), 2)
    peer.expect_channel_close(503, _at(what), str(xid), "it is active", channel=2)


@pytest.mark.rule("0-10t#205", "0-10t#201")
def test_without_a_prepare_the_commit_has_to_be_in_one_phase(peer: Peer, name: str) -> None:
    peer.queue(name, exclusive=True)
    selected(peer)
    xid = new_xid()
    work(peer, name, xid)
    peer.send(s.DtxCoordinationCommit(xid.encode(), one_phase=False))
    peer.expect_channel_close(503, _at("commit"), "it is idle")


@pytest.mark.rule("0-10t#206", "0-10t#201")
def test_after_a_prepare_the_commit_must_not_be_in_one_phase(peer: Peer, name: str) -> None:
    peer.queue(name, exclusive=True)
    selected(peer)
    xid = new_xid()
    work(peer, name, xid)
    coordinate(peer, "prepare", xid)
    peer.send(s.DtxCoordinationCommit(xid.encode(), one_phase=True))
    peer.expect_channel_close(503, _at("commit"), "it is prepared")
    peer.ask(m.ChannelOpen())
    assert coordinate(peer, "rollback", xid) == OK


@pytest.mark.rule("0-10t#215", "0-10t#208")
@pytest.mark.parametrize("what", ["prepare", "forget"])
def test_a_prepared_branch_is_neither_prepared_again_nor_forgotten(
    peer: Peer, name: str, what: str
) -> None:
    peer.queue(name, exclusive=True)
    selected(peer)
    xid = new_xid()
    work(peer, name, xid)
    coordinate(peer, "prepare", xid)
    peer.send(METHODS[what](xid.encode()))
    peer.expect_channel_close(503, _at(what), "it is prepared")
    peer.ask(m.ChannelOpen())
    assert coordinate(peer, "rollback", xid) == OK


@pytest.mark.rule("0-10t#216", "0-10t#217")
@pytest.mark.parametrize("what", ["commit", "rollback"])
def test_a_prepared_branch_outlives_the_broker_and_completes_either_way(
    start_site: StartSite, what: str
) -> None:
    xid = new_xid()
    site = start_site()
    peer = Peer(site, site.connect()).open()
    peer.queue("q", durable=True)
    selected(peer)
    lasting = b"\x10\x00\x02"
    peer.publish("", "q", b"old", lasting)
    peer.settle()
    start(peer, xid)
    got = peer.get("q")
    peer.send(m.BasicAck(got.method.delivery_tag))
    peer.publish("", "q", b"new", lasting)
    peer.settle()
    end(peer, xid)
    assert coordinate(peer, "prepare", xid) == OK
    peer.drop()
    site.process.kill()
    site.process.wait()
    again = start_site()
    peer = Peer(again, again.connect()).open()
    assert in_doubt(peer) == [xid.encode()]
    assert bodies(peer, "q") == []
    assert coordinate(peer, what, xid) == OK
    assert bodies(peer, "q") == [b"new" if what == "commit" else b"old"]
    assert in_doubt(peer) == []
    peer.close()
    again.close()


def test_a_prepare_without_work_is_read_only(peer: Peer) -> None:
    selected(peer)
    xid = new_xid()
    start(peer, xid)
    end(peer, xid)
    assert coordinate(peer, "prepare", xid) == READ_ONLY
    assert xid.encode() not in in_doubt(peer)


def test_a_full_queue_is_found_by_the_prepare(peer: Peer, name: str) -> None:
    peer.queue(name, exclusive=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    selected(peer)
    xid = new_xid()
    start(peer, xid)
    for body in (b"1", b"2"):
        peer.publish("", name, body)
    peer.settle()
    end(peer, xid)
    assert coordinate(peer, "prepare", xid) == ROLLED_BACK
    assert coordinate(peer, "rollback", xid) == OK
    assert bodies(peer, name) == []


# --- errors of our own --------------------------------------------------------------------------


@pytest.mark.rule("0-10t#200", "0-10t#227")
@pytest.mark.parametrize("what", ["commit", "rollback"])
def test_a_record_that_cannot_be_read_is_an_internal_error_of_the_channel(
    memory_peer: Peer, memory: MemorySite, what: str
) -> None:
    peer = memory_peer
    peer.queue("q")
    selected(peer)
    xid = new_xid()
    work(peer, "q", xid)
    coordinate(peer, "prepare", xid)
    log = memory.broker.branches._log()
    log.settle(log.first())
    peer.send(METHODS[what](xid.encode()))
    peer.expect_channel_close(541, _at(what), "cannot be read")


@pytest.mark.rule("0-10t#207", "0-10t#212", "0-10t#214", "0-10t#221", "0-10t#232")
@pytest.mark.parametrize("what", ["forget", "get-timeout", "prepare", "set-timeout", "recover"])
def test_any_other_error_is_one_too(
    memory_peer: Peer, memory: MemorySite, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """None of them can fail by itself, so they are made to."""
    peer = memory_peer
    branches = memory.broker.branches

    def fail(*_args: object) -> None:
        raise RuntimeError("broken for a test")

    monkeypatch.setattr(branches, "in_doubt" if what == "recover" else "find", fail)
    method = METHODS.get(what)
    octets = new_xid().encode()
    peer.send(s.DtxCoordinationRecover(startscan=True) if method is None else method(octets))
    peer.expect_channel_close(541, _at(what))


# --- tickets ------------------------------------------------------------------------------------


@pytest.mark.rule("0-10t#202", "0-10t#209", "0-10t#218", "0-10t#224", "0-10t#229", "0-10t#235")
@pytest.mark.parametrize("what", [each for each in METHODS if each != "get-timeout"])
def test_a_ticket_has_to_give_active_access(peer: Peer, what: str) -> None:
    passive = peer.ask(m.AccessRequest(realm="/data", passive=True, active=False)).ticket
    peer.send(METHODS[what](new_xid().encode(), ticket=passive))
    peer.expect_channel_close(403, _at(what), f"ticket {passive}", "active access")


@pytest.mark.rule("0-10t#224")
def test_a_ticket_has_to_give_active_access_to_a_scan(peer: Peer) -> None:
    passive = peer.ask(m.AccessRequest(realm="/data", passive=True, active=False)).ticket
    peer.send(s.DtxCoordinationRecover(startscan=True, ticket=passive))
    peer.expect_channel_close(403, _at("recover"), f"ticket {passive}", "active access")


# --- recovery -----------------------------------------------------------------------------------


def _prepare(peer: Peer, queue: str, count: int) -> list[Xid]:
    xids = [new_xid() for _ in range(count)]
    for xid in xids:
        start(peer, xid)
        peer.publish("", queue, b"1")
        end(peer, xid)
        assert coordinate(peer, "prepare", xid) == OK
    return xids


@pytest.mark.rule("0-10t#226")
def test_a_scan_tells_of_what_is_prepared_as_a_sequence_of_octets(
    memory_peer: Peer, memory: MemorySite
) -> None:
    peer = memory_peer
    peer.queue("q")
    selected(peer)
    (xid,) = _prepare(peer, "q", 1)
    start(peer, new_xid())
    peer.send(s.DtxCoordinationRecover(startscan=True, endscan=True))
    frame = peer.next_frame("recover-ok")
    octets = xid.encode()
    value = b"\xa0" + len(octets).to_bytes(4) + octets
    sequence = b"\xa9" + len(value).to_bytes(4) + value
    assert frame.payload[4:] == (len(sequence) + 5).to_bytes(4) + b"\x04xids" + sequence
    memory.broker.branches.decide("/", xid, commit=True)
    assert in_doubt(peer) == [octets]


@pytest.mark.rule("0-10t#223")
def test_a_scan_has_to_be_started(peer: Peer) -> None:
    peer.send(s.DtxCoordinationRecover())
    peer.expect_channel_close(503, _at("recover"), "there is no recovery scan")


@pytest.mark.rule("0-10t#222", "0-10t#223")
def test_one_call_starts_and_ends_a_scan(peer: Peer) -> None:
    peer.ask(s.DtxCoordinationRecover(startscan=True, endscan=True))
    peer.send(s.DtxCoordinationRecover())
    peer.expect_channel_close(503, _at("recover"), "there is no recovery scan")


@pytest.mark.rule("0-10t#225")
def test_a_scan_goes_on_where_it_was_and_begins_again_when_it_is_started(
    memory_peer: Peer,
) -> None:
    peer = memory_peer
    peer.queue("q")
    selected(peer)
    xids = [xid.encode() for xid in _prepare(peer, "q", 60)]
    first = peer.ask(s.DtxCoordinationRecover(startscan=True)).in_doubt["xids"]
    second = peer.ask(s.DtxCoordinationRecover()).in_doubt["xids"]
    assert [*first, *second] == xids[: len(first) + len(second)]
    assert 0 < len(second) <= len(first) < len(xids)
    again = peer.ask(s.DtxCoordinationRecover(startscan=True)).in_doubt["xids"]
    assert again == first
    assert in_doubt(peer) == xids


# --- heuristic decisions ------------------------------------------------------------------------


@pytest.mark.parametrize("commit", [True, False])
def test_the_manager_is_told_of_a_decision_and_then_forgets_it(
    memory_peer: Peer, memory: MemorySite, commit: bool
) -> None:
    peer = memory_peer
    peer.queue("q")
    selected(peer)
    xid = new_xid()
    work(peer, "q", xid)
    coordinate(peer, "prepare", xid)
    memory.broker.branches.decide("/", xid, commit=commit)
    told = HEURISTIC_COMMIT if commit else HEURISTIC_ROLLBACK
    assert coordinate(peer, "commit", xid) == told
    assert coordinate(peer, "rollback", xid) == told
    assert in_doubt(peer) == [xid.encode()]
    peer.run(s.DtxCoordinationForget(xid.encode()))
    assert in_doubt(peer) == []


# --- timeouts -----------------------------------------------------------------------------------


def _timeout(peer: Peer, xid: Xid) -> int:
    answer: s.DtxCoordinationGetTimeoutOk = peer.ask(s.DtxCoordinationGetTimeout(xid.encode()))
    return answer.timeout


@pytest.mark.rule("0-10t#233", "0-10t#234")
def test_a_timeout_holds_until_it_is_set_again_and_zero_is_the_default(peer: Peer) -> None:
    selected(peer)
    xid = new_xid()
    start(peer, xid)
    assert _timeout(peer, xid) == 60
    for seconds in (200, 300):
        peer.run(s.DtxCoordinationSetTimeout(xid.encode(), seconds))
        assert _timeout(peer, xid) == seconds
    end(peer, xid)
    assert _timeout(peer, xid) == 300
    peer.run(s.DtxCoordinationSetTimeout(xid.encode(), 0))
    assert _timeout(peer, xid) == 60
    coordinate(peer, "rollback", xid)


@pytest.mark.rule("0-10t#233")
def test_a_branch_that_takes_longer_is_rolled_back(memory_peer: Peer, memory: MemorySite) -> None:
    peer = memory_peer
    peer.queue("q")
    selected(peer)
    xid = new_xid()
    work(peer, "q", xid)
    peer.run(s.DtxCoordinationSetTimeout(xid.encode(), 5))
    memory.pass_time(4)
    assert bodies(peer, "q") == []
    memory.pass_time(2)
    assert bodies(peer, "q") == [b"old"]
    for what in ("prepare", "rollback"):
        assert coordinate(peer, what, xid) == TIMED_OUT


def test_a_timeout_that_is_too_long_is_not_allowed(peer: Peer) -> None:
    selected(peer)
    xid = new_xid()
    start(peer, xid)
    peer.send(s.DtxCoordinationSetTimeout(xid.encode(), 86_401))
    peer.expect_channel_close(530, _at("set-timeout"), "86400 s is the most")
