"""The class dtx-demarcation of transitional 0-10: branches begin, go on, and end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harebell.model.xa.xid import Xid
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from harebell.wire.v09.methods_transitional import MessageGet
from tests.conformance.sites import MemorySite
from tests.conformance.v010t.branches import (
    END,
    OK,
    ROLLED_BACK,
    START,
    TIMED_OUT,
    bodies,
    coordinate,
    end,
    new_xid,
    selected,
    start,
    swap,
    work,
)
from tests.conformance.v010t.peer import Peer
from tests.conformance.v010t.transfers import expect_transfer, transfer

Connect = Callable[[], Peer]


@pytest.mark.rule("0-10t#183", "0-10t#193")
def test_work_between_start_and_end_is_the_branchs_and_other_work_is_nobodys(
    peer: Peer, name: str
) -> None:
    peer.queue(name, exclusive=True)
    selected(peer)
    xid = new_xid()
    peer.publish("", name, b"old")
    peer.settle()
    assert start(peer, xid) == OK
    peer.publish("", name, b"in the branch")
    peer.settle()
    assert end(peer, xid) == OK
    peer.publish("", name, b"outside")
    peer.settle()
    assert bodies(peer, name) == [b"old", b"outside"]
    assert coordinate(peer, "commit", xid, one_phase=True) == OK
    assert bodies(peer, name) == [b"in the branch"]


def test_acknowledgements_and_messages_of_a_branch_take_effect_with_the_commit(
    peer: Peer, name: str
) -> None:
    peer.queue(name, exclusive=True)
    selected(peer)
    xid = new_xid()
    work(peer, name, xid)
    assert bodies(peer, name) == []
    assert coordinate(peer, "commit", xid, one_phase=True) == OK
    assert bodies(peer, name) == [b"new"]


@pytest.mark.rule("0-10t#184")
def test_start_before_select_is_refused(peer: Peer) -> None:
    peer.send(s.DtxDemarcationStart(new_xid().encode()))
    peer.expect_channel_close(503, START, "has not selected distributed transactions")


@pytest.mark.rule("0-10t#184")
def test_start_amid_a_branch_is_refused(peer: Peer) -> None:
    selected(peer)
    first, second = new_xid(), new_xid()
    start(peer, first)
    peer.send(s.DtxDemarcationStart(second.encode()))
    peer.expect_channel_close(503, START, str(second), f"works on xid {first}")


@pytest.mark.rule("0-10t#184")
def test_neither_kind_of_transaction_mixes_with_the_other(connect: Connect) -> None:
    peer = connect().open(channels=(1, 2, 3))
    peer.run(m.TxSelect())
    peer.send(s.DtxDemarcationSelect())
    peer.expect_channel_close(503, "dtx-demarcation.select", "transactions of its own")
    selected(peer, 2)
    peer.run(m.TxSelect(), 2)
    xid = new_xid()
    peer.send(s.DtxDemarcationStart(xid.encode()), 2)
    peer.expect_channel_close(503, START, "transactions of its own", channel=2)
    selected(peer, 3)
    start(peer, xid, 3)
    peer.send(m.TxSelect(), 3)
    peer.expect_channel_close(503, "tx.select", "distributed transaction", channel=3)


def test_tx_commit_is_no_way_to_commit_a_branch(peer: Peer) -> None:
    selected(peer)
    start(peer, new_xid())
    peer.send(m.TxCommit())
    peer.expect_channel_close(406, "tx.commit", "not transactional")


@pytest.mark.rule("0-10t#185", "0-10t#188")
@pytest.mark.parametrize("ended", [False, True])
def test_start_of_a_known_xid_is_not_allowed(connect: Connect, ended: bool) -> None:
    peer = connect().open(channels=(1, 2))
    xid = new_xid()
    for channel in (1, 2):
        selected(peer, channel)
    start(peer, xid, 1)
    if ended:
        end(peer, xid, 1)
    peer.send(s.DtxDemarcationStart(xid.encode()), 2)
    peer.expect_channel_close(530, START, str(xid), "is known already", channel=2)
    peer.send(s.DtxDemarcationStart(xid.encode()), 1)
    peer.expect_channel_close(530, START, str(xid), "is known already", channel=1)


@pytest.mark.rule("0-10t#186")
def test_join_and_resume_exclude_each_other(peer: Peer) -> None:
    selected(peer)
    peer.send(s.DtxDemarcationStart(new_xid().encode(), join=True, resume=True))
    peer.expect_channel_close(503, START, "join and resume exclude each other")


@pytest.mark.rule("0-10t#189")
def test_join_is_supported_so_it_is_not_refused(connect: Connect, name: str) -> None:
    peer = connect().open(channels=(1, 2))
    peer.queue(name, exclusive=True)
    xid = new_xid()
    for channel in (1, 2):
        selected(peer, channel)
        assert start(peer, xid, channel, join=channel == 2) == OK
        peer.publish("", name, b"%d" % channel, channel=channel)
        peer.settle(channel)
    for channel in (1, 2):
        assert end(peer, xid, channel) == OK
    assert coordinate(peer, "commit", xid, one_phase=True) == OK
    assert bodies(peer, name) == [b"1", b"2"]


def test_an_unknown_branch_cannot_be_joined(peer: Peer) -> None:
    selected(peer)
    peer.send(s.DtxDemarcationStart(new_xid().encode(), join=True))
    peer.expect_channel_close(404, START, "is not known")


@pytest.mark.rule("0-10t#190")
def test_end_before_select_is_refused(peer: Peer) -> None:
    peer.send(s.DtxDemarcationEnd(new_xid().encode()))
    peer.expect_channel_close(503, END, "has not selected distributed transactions")


@pytest.mark.rule("0-10t#190", "0-10t#196")
@pytest.mark.parametrize("other", [False, True])
def test_end_of_what_the_session_does_not_work_on_is_refused(peer: Peer, other: bool) -> None:
    selected(peer)
    xid = new_xid()
    if other:
        start(peer, new_xid())
    peer.send(s.DtxDemarcationEnd(xid.encode()))
    peer.expect_channel_close(503, END, f"not associated with xid {xid}")


@pytest.mark.rule("0-10t#191")
def test_suspend_and_fail_exclude_each_other(peer: Peer) -> None:
    selected(peer)
    xid = new_xid()
    start(peer, xid)
    peer.send(s.DtxDemarcationEnd(xid.encode(), fail=True, suspend=True))
    peer.expect_channel_close(503, END, "suspend and fail exclude each other")


@pytest.mark.rule("0-10t#192")
def test_an_error_amid_the_end_is_an_internal_error_of_the_channel(
    memory_peer: Peer, memory: MemorySite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing in `end` can fail by itself, so it is made to; a refusal has the code of its kind."""
    from harebell.model.xa.branch import BranchError
    from harebell.model.xa.states import Fault

    peer = memory_peer
    selected(peer)
    xid = new_xid()
    start(peer, xid)

    def fail(*_args: object) -> None:
        raise BranchError(Fault.FAILED, "the branch cannot be ended")

    monkeypatch.setattr(memory.broker.branches, "apply", fail)
    peer.send(s.DtxDemarcationEnd(xid.encode()))
    close = peer.expect(m.ChannelClose, reply_code=541)
    assert "cannot be ended" in close.reply_text
    monkeypatch.undo()
    peer.send(m.ChannelCloseOk())


@pytest.mark.rule("0-10t#194")
@pytest.mark.parametrize("how", ["close", "error", "loss", "suspended"])
def test_a_session_that_ends_makes_its_branches_fail(connect: Connect, name: str, how: str) -> None:
    peer, other = connect().open(), connect().open()
    other.queue(name, durable=True)
    selected(peer)
    xid = new_xid()
    peer.publish("", name, b"old")
    peer.settle()
    start(peer, xid)
    swap(peer, name)
    if how == "suspended":
        assert end(peer, xid, suspend=True) == OK
    if how == "error":
        peer.send(m.QueuePurge(queue=f"{name}-none"))
        peer.expect_channel_close(404, "queue.purge")
    elif how == "loss":
        peer.drop()
        # Another connection may be read before the loss of the first one is.
        while not other.ask(m.QueueDeclare(queue=name, passive=True)).message_count:
            pass
    else:
        peer.ask(m.ChannelClose(reply_code=200))
    assert coordinate(other, "prepare", xid) == ROLLED_BACK
    assert coordinate(other, "rollback", xid) == OK
    assert bodies(other, name) == [b"old"]
    other.ask(m.QueueDelete(queue=name))


@pytest.mark.rule("0-10t#194")
def test_a_detached_session_keeps_its_branch_as_long_as_it_lives(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer, other = connect_memory().open(channels=()), connect_memory().open()
    peer.attach(lifetime=20)
    selected(peer)
    xid = new_xid()
    start(peer, xid)
    peer.run(s.DtxCoordinationSetTimeout(xid.encode(), 1_000))
    peer.ask(s.SessionSuspend())
    memory.pass_time(10)
    other.send(s.DtxCoordinationPrepare(xid.encode()))
    other.expect_channel_close(503, "dtx-coordination.prepare", "it is active")
    memory.pass_time(20)
    other.ask(m.ChannelOpen())
    assert coordinate(other, "prepare", xid) == ROLLED_BACK


@pytest.mark.rule("0-10t#197")
def test_a_failure_rolls_the_branch_back_and_says_so(peer: Peer, name: str) -> None:
    peer.queue(name, exclusive=True)
    selected(peer)
    xid = new_xid()
    peer.publish("", name, b"old")
    peer.settle()
    start(peer, xid)
    swap(peer, name)
    assert end(peer, xid, fail=True) == ROLLED_BACK
    assert bodies(peer, name) == [b"old"]
    assert coordinate(peer, "prepare", xid) == ROLLED_BACK
    assert coordinate(peer, "commit", xid, one_phase=True) == ROLLED_BACK


@pytest.mark.rule("0-10t#198")
def test_a_suspended_branch_is_resumed(peer: Peer, name: str) -> None:
    peer.queue(name, exclusive=True)
    selected(peer)
    xid, other = new_xid(), new_xid()
    start(peer, xid)
    peer.publish("", name, b"1")
    assert end(peer, xid, suspend=True) == OK
    start(peer, other)
    peer.publish("", name, b"2")
    assert end(peer, other) == OK
    peer.publish("", name, b"now")
    peer.settle()
    assert start(peer, xid, resume=True) == OK
    peer.publish("", name, b"3")
    peer.settle()
    assert end(peer, xid) == OK
    assert bodies(peer, name) == [b"now"]
    coordinate(peer, "commit", xid, one_phase=True)
    assert bodies(peer, name) == [b"1", b"3"]
    coordinate(peer, "rollback", other)
    assert bodies(peer, name) == []


@pytest.mark.rule("0-10t#198")
def test_a_suspended_branch_is_not_prepared(peer: Peer) -> None:
    selected(peer)
    xid = new_xid()
    start(peer, xid)
    end(peer, xid, suspend=True)
    peer.send(s.DtxCoordinationPrepare(xid.encode()))
    peer.expect_channel_close(503, "dtx-coordination.prepare", "it is active")


@pytest.mark.parametrize("flag", ["join", "resume"])
def test_a_branch_that_failed_takes_no_more_work(connect: Connect, flag: str) -> None:
    peer = connect().open(channels=(1, 2))
    xid = new_xid()
    for channel in (1, 2):
        selected(peer, channel)
    start(peer, xid, 1)
    start(peer, xid, 2, join=True)
    end(peer, xid, 2, suspend=True)
    end(peer, xid, 1, fail=True)
    if flag == "join":
        assert start(peer, xid, 1, join=True) == ROLLED_BACK
    assert start(peer, xid, 2, resume=True) == ROLLED_BACK
    assert coordinate(peer, "rollback", xid) == OK


def test_a_branch_that_took_too_long_says_so(memory_peer: Peer, memory: MemorySite) -> None:
    peer = memory_peer
    peer.queue("q")
    selected(peer)
    xid = new_xid()
    peer.publish("", "q", b"old")
    peer.settle()
    start(peer, xid)
    swap(peer, "q")
    peer.run(s.DtxCoordinationSetTimeout(xid.encode(), 2))
    memory.pass_time(3)
    assert end(peer, xid) == TIMED_OUT
    assert bodies(peer, "q") == [b"old"]
    assert coordinate(peer, "rollback", xid) == TIMED_OUT


@pytest.mark.rule("0-10t#187", "0-10t#195")
@pytest.mark.parametrize("at", ["start", "end"])
def test_a_ticket_has_to_give_active_access(peer: Peer, at: str) -> None:
    active = peer.ask(m.AccessRequest(realm="/data", active=True)).ticket
    selected(peer)
    xid = new_xid()
    if at == "end":
        assert start(peer, xid, ticket=active) == OK
    passive = peer.ask(m.AccessRequest(realm="/data", passive=True, active=False)).ticket
    if at == "start":
        peer.send(s.DtxDemarcationStart(xid.encode(), ticket=passive))
        peer.expect_channel_close(403, START, f"ticket {passive}", "active access")
        return
    peer.send(s.DtxDemarcationEnd(xid.encode(), ticket=passive))
    peer.expect_channel_close(403, END, f"ticket {passive}", "active access")


@pytest.mark.rule("0-10t#008")
@pytest.mark.parametrize("octets", [b"", b"\0\0\0\0\2\0a", b"\0\0\0\0\1\1abc", bytes(4) + b"A\0"])
def test_octets_that_are_no_xid_are_refused(peer: Peer, octets: bytes) -> None:
    selected(peer)
    peer.send(s.DtxDemarcationStart(octets))
    peer.expect_channel_close(530, START, "xid")


@pytest.mark.rule("0-10t#008")
def test_the_longest_and_the_shortest_xid_are_fine(peer: Peer) -> None:
    selected(peer)
    for xid in (Xid(0, b"", b""), Xid(2**32 - 1, b"g" * 64, b"b" * 64)):
        assert start(peer, xid) == OK
        assert end(peer, xid) == OK
        assert coordinate(peer, "rollback", xid) == OK


def test_an_unroutable_message_of_a_branch_comes_back_at_once(peer: Peer) -> None:
    selected(peer)
    xid = new_xid()
    start(peer, xid)
    number = peer.publish("", "nobody-is-here", b"1", mandatory=True)
    assert peer.expect(m.BasicReject).delivery_tag == number
    end(peer, xid)
    coordinate(peer, "rollback", xid)


def test_deliveries_that_a_branch_settles_do_not_count_against_the_prefetch(
    peer: Peer, name: str
) -> None:
    peer.queue(name, exclusive=True)
    for body in (b"1", b"2", b"3"):
        peer.publish("", name, body)
    peer.run(m.BasicQos(prefetch_count=1))
    selected(peer)
    xid = new_xid()
    start(peer, xid)
    peer.consume(name)
    for body in (b"1", b"2"):
        tag = peer.expect_delivery(body).method.delivery_tag
        peer.send(m.BasicAck(tag))
    peer.expect_delivery(b"3")
    end(peer, xid)
    coordinate(peer, "rollback", xid)
    # Three are out or ready again, and the prefetch is taken by the third.
    peer.send(m.BasicAck(0, multiple=True))
    for body in (b"1", b"2"):
        found = peer.expect_delivery(body, redelivered=True)
        peer.send(m.BasicAck(found.method.delivery_tag))
    peer.settle()


@pytest.mark.parametrize("what", ["commit", "rollback"])
def test_transfers_and_their_completion_are_work_of_a_branch(
    connect: Connect, name: str, what: str
) -> None:
    peer = connect().open()
    peer.queue(name, exclusive=True)
    transfer(peer, name, b"old")
    selected(peer)
    xid = new_xid()
    start(peer, xid)
    peer.send(MessageGet(queue=name))
    expect_transfer(peer, b"old")
    peer.complete(peer.received())
    transfer(peer, name, b"new")
    end(peer, xid)
    assert bodies(peer, name) == []
    assert coordinate(peer, "prepare", xid) == OK
    assert coordinate(peer, what, xid) == OK
    peer.send(MessageGet(queue=name, no_ack=True))
    expect_transfer(peer, b"new" if what == "commit" else b"old")
    assert bodies(peer, name) == []
