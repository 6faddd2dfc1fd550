"""No user uses up what others need: one at the limit of every count, and another who goes on.

docs/internals/shared-state.md lists the counts. The limits are lowered, so that few are enough.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pytest

from harebell.model import limits, query_reports, staging
from harebell.model.publishing import publishers, stages
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_older as own
from harebell.wire.v09 import stage
from harebell.wire.v09.methods_older import FileOpen
from tests.conformance.frames import BODY, HEADER, frame
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite
from tests.conformance.v08.peer import Peer8

MOST = 16
SHARE = MOST // 4
_REFUSED = (m.ChannelClose, m.ConnectionClose)
EVE, ANN = "eve", "ann"


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> MemorySite:
    """A broker with low limits and two users."""
    monkeypatch.setattr(publishers, "PUBLISHERS_COUNT", MOST)
    monkeypatch.setattr(stages, "STAGES_COUNT", MOST)
    monkeypatch.setattr(staging, "STAGED_FILES_COUNT", MOST)
    monkeypatch.setattr(query_reports, "QUERY_REPORTS", MOST)
    monkeypatch.setattr(limits, "BRANCHES", MOST)
    monkeypatch.setattr(limits, "LEASE_GROUPS", MOST)
    memory = MemorySite()
    for name in (EVE, ANN):
        memory.users.add(name, "secret", vhosts=("/",))
    memory.broker.vhosts["/"].declare_queue("q", durable=True)
    return memory


class Way(NamedTuple):
    """How a user has the broker keep one thing more.

    Args:
        ask: sends what asks for it; for a number.
        old: whether it is done in AMQP 0-8.
    """

    ask: Callable[[Any, int], Any]
    old: bool = False


def _ask(peer: Any, method: m.Method) -> m.Method:
    """The next method after this one: the reply, or a refusal."""
    peer.send(method)
    answer: m.Method = peer.SPEC.decode(peer.next_frame(method.NAME).payload)
    return answer


def _staged(peer: Peer, number: int) -> m.Method:
    """Stage one row as batch `number` of one publisher."""
    schema = pa.schema([("value", pa.binary())])
    rows = pa.RecordBatch.from_pylist([{"value": b"1"}], schema=schema).serialize().to_pybytes()
    name = f"p of {id(peer)}"
    if number == 0:
        peer.ask(m.StageOpen(name, "r"))
    header = stage.CLASS_ID.to_bytes(2) + bytes(2) + len(rows).to_bytes(8) + b"\0\0"
    peer.send(m.StageAppend(name, "r", number, 0, 1, 0, b"value"))
    peer.send_bytes(frame(HEADER, 1, header), frame(BODY, 1, bytes(rows)))
    answer: m.Method = peer.SPEC.decode(peer.next_frame("stage.append-ok").payload)
    return answer


def _branch(peer: Any, number: int) -> Any:
    if number == 0:
        peer.ask(own.DtxSelect())
    return _ask(peer, own.DtxStart(uuid.uuid4().hex))


WAYS = {
    "publishers": Way(lambda peer, n: _ask(peer, m.StageOpen(f"p{n} of {id(peer)}", "r"))),
    "staged batches": Way(_staged),
    "lease groups": Way(lambda peer, n: _ask(peer, m.LeaseOpen("q", f"g{n} of {id(peer)}"))),
    "query reports": Way(lambda peer, n: _ask(peer, m.QueryReport(f"q{n}", {}))),
    "staged files": Way(lambda peer, n: _ask(peer, FileOpen(f"f{n}", 4)), old=True),
    "branches": Way(_branch, old=True),
}


def _open(site: MemorySite, way: Way, user: str) -> Any:
    if way.old:
        return Peer8(site, site.connect()).open(user=user, password="secret")
    return Peer(site, site.connect()).open(user=user, password="secret")


@pytest.mark.parametrize("name", WAYS)
def test_a_user_at_his_share_is_refused_and_another_one_goes_on(
    site: MemorySite, name: str
) -> None:
    way = WAYS[name]
    before, eve = _open(site, way, ANN), _open(site, way, EVE)
    way.ask(before, 0)
    answers = [way.ask(eve, number) for number in range(SHARE + 1)]
    assert not any(isinstance(each, _REFUSED) for each in answers[:SHARE]), answers
    assert isinstance(answers[-1], _REFUSED), answers
    assert "user 'eve' has 4 " in answers[-1].reply_text
    assert "one user may have 4" in answers[-1].reply_text
    assert not isinstance(way.ask(before, 1), _REFUSED)


def test_commits_of_a_sink_are_known_after_any_flood_of_others(site: MemorySite) -> None:
    ann = Peer(site, site.connect()).open(user=ANN, password="secret")
    assert ann.ask(m.PublisherDeclare("sink")).next == 0
    entry = site.broker.publishers.entry(publishers.Key(publishers.NUMBERED, "/", ANN, "sink"))
    site.broker.publishers.advance(entry, 2)
    ann.close()
    for _ in range(3):
        eve = Peer(site, site.connect()).open(user=EVE, password="secret")
        for number in range(2 * MOST):
            if isinstance(_ask(eve, m.StageOpen(f"p{number}", "r")), m.ChannelClose):
                break
    again = Peer(site, site.connect()).open(user=ANN, password="secret")
    assert again.ask(m.PublisherDeclare("sink")).next == 3
