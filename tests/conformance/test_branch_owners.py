"""Branches of distributed transactions over the wire: another user sees and ends none of them."""

from __future__ import annotations

import uuid

import pytest

from harebell.model.xa.xid import FORMAT_0_8, Xid
from harebell.wire.v010 import commands as c
from harebell.wire.v010 import structs
from harebell.wire.v09 import methods_older as own
from harebell.wire.v09 import methods_transitional as s
from tests.conformance.sites import MemorySite
from tests.conformance.v010.raw import Peer010
from tests.conformance.v010.talk import Talk
from tests.conformance.v010t import branches
from tests.conformance.v010t.peer import Peer
from tests.conformance.v08.peer import Peer8

OTHER = {"user": "other", "password": "secret"}
NOT_FOUND, NOT_ALLOWED = 404, 530


@pytest.fixture
def shared(memory: MemorySite) -> MemorySite:
    """A broker with a second user, who may do everything in the vhost but administer it."""
    memory.users.add("other", "secret", vhosts=("/",), tags=("management", "monitoring"))
    return memory


def _prepared(memory: MemorySite) -> Xid:
    """A prepared branch of guest's, with a message for queue q in it."""
    xid = Xid(1, uuid.uuid4().bytes, b"b")
    talk = Talk(Peer010(memory, memory.connect()).open().attach("owner"))
    talk.do(c.QueueDeclare("q"), c.DtxSelect())
    assert talk.ask(c.DtxStart(structs.Xid(*xid))).status == 0
    talk.publish("", b"new", routing_key="q")
    assert talk.ask(c.DtxEnd(structs.Xid(*xid))).status == 0
    assert talk.ask(c.DtxPrepare(structs.Xid(*xid))).status == 0
    talk.leave()
    return xid


_CALLS_0_10 = {
    "prepare": lambda xid: c.DtxPrepare(xid),
    "commit": lambda xid: c.DtxCommit(xid),
    "one phase": lambda xid: c.DtxCommit(xid, one_phase=True),
    "rollback": lambda xid: c.DtxRollback(xid),
    "forget": lambda xid: c.DtxForget(xid),
    "get-timeout": lambda xid: c.DtxGetTimeout(xid),
    "set-timeout": lambda xid: c.DtxSetTimeout(xid, 1),
    "join": lambda xid: c.DtxStart(xid, join=True),
    "resume": lambda xid: c.DtxStart(xid, resume=True),
}


@pytest.mark.parametrize("call", _CALLS_0_10)
def test_in_0_10_another_users_branch_is_not_found(shared: MemorySite, call: str) -> None:
    xid = _prepared(shared)
    talk = Talk(Peer010(shared, shared.connect()).open(**OTHER).attach("other"))
    talk.do(c.DtxSelect())
    talk.fails(_CALLS_0_10[call](structs.Xid(*xid)), NOT_FOUND, f"xid {xid} is not known")
    assert shared.broker.branches.find("/", xid) is not None


_CALLS_TRANSITIONAL = {
    "prepare": lambda xid: s.DtxCoordinationPrepare(xid),
    "commit": lambda xid: s.DtxCoordinationCommit(xid),
    "one phase": lambda xid: s.DtxCoordinationCommit(xid, one_phase=True),
    "rollback": lambda xid: s.DtxCoordinationRollback(xid),
    "forget": lambda xid: s.DtxCoordinationForget(xid),
    "get-timeout": lambda xid: s.DtxCoordinationGetTimeout(xid),
    "set-timeout": lambda xid: s.DtxCoordinationSetTimeout(xid, 1),
    "join": lambda xid: s.DtxDemarcationStart(xid, join=True),
    "resume": lambda xid: s.DtxDemarcationStart(xid, resume=True),
}


@pytest.mark.parametrize("call", _CALLS_TRANSITIONAL)
def test_in_transitional_0_10_another_users_branch_is_not_found(
    shared: MemorySite, call: str
) -> None:
    xid = _prepared(shared)
    peer = Peer(shared, shared.connect()).open(**OTHER)
    branches.selected(peer)
    method = _CALLS_TRANSITIONAL[call](xid.encode())
    peer.send(method)
    peer.expect_channel_close(NOT_FOUND, method.NAME, f"xid {xid} is not known")
    assert shared.broker.branches.find("/", xid) is not None


def test_recovery_lists_ones_own_in_every_version(shared: MemorySite) -> None:
    xid = _prepared(shared)
    for user, known in ((OTHER, []), ({}, [xid.encode()])):
        assert branches.in_doubt(Peer(shared, shared.connect()).open(**user)) == known
        talk = Talk(Peer010(shared, shared.connect()).open(**user).attach(uuid.uuid4().hex))
        found = talk.ask(c.DtxRecover()).in_doubt
        assert len(found) == len(known)


def test_an_administrator_ends_the_branch_of_another_user(shared: MemorySite) -> None:
    xid = _prepared(shared)
    user = shared.users.get("other")
    assert user is not None
    user.tags = ("administrator",)
    talk = Talk(Peer010(shared, shared.connect()).open(**OTHER).attach("other"))
    assert talk.ask(c.DtxCommit(structs.Xid(*xid))).status == 0
    assert shared.broker.vhosts["/"].queues["q"].ready_count() == 1


def test_in_0_8_the_identifier_of_another_user_cannot_be_started(shared: MemorySite) -> None:
    first, second = (Peer8(shared, shared.connect()).open(**user) for user in ({}, OTHER))
    first.ask(own.DtxSelect())
    first.ask(own.DtxStart("order 7"))
    second.ask(own.DtxSelect())
    second.send(own.DtxStart("order 7"))
    xid = Xid(FORMAT_0_8, b"order 7", b"")
    text = f"NOT_ALLOWED - xid {xid} is known already"
    second.expect_channel_close(NOT_ALLOWED, text, "dtx.start")
    branch = shared.broker.branches.find("/", xid)
    assert branch is not None
    assert branch.user == "guest"
