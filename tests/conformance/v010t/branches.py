"""A session that takes part in distributed transactions, and one that looks at what they left."""

from __future__ import annotations

import uuid
from typing import Any

from harebell.model.xa.xid import Xid
from harebell.wire.v09 import methods as m
from harebell.wire.v09 import methods_transitional as s
from tests.conformance.v010t.peer import Peer

OK, ROLLED_BACK, TIMED_OUT, READ_ONLY = 0, 1, 2, 7
HEURISTIC_COMMIT, HEURISTIC_ROLLBACK = 4, 5
START, END = "dtx-demarcation.start", "dtx-demarcation.end"


def new_xid() -> Xid:
    """An xid that no other test has: the broker behind the socket is shared."""
    return Xid(0, uuid.uuid4().bytes, b"branch")


def selected(peer: Peer, channel: int = 1) -> None:
    """The session takes part in distributed transactions."""
    peer.run(s.DtxDemarcationSelect(), channel)


def start(peer: Peer, xid: Xid, channel: int = 1, **flags: Any) -> int:
    """dtx-demarcation.start; returns the status."""
    answer: s.DtxDemarcationStartOk = peer.ask(
        s.DtxDemarcationStart(xid.encode(), **flags), channel
    )
    return answer.status


def end(peer: Peer, xid: Xid, channel: int = 1, **flags: Any) -> int:
    """dtx-demarcation.end; returns the status."""
    answer: s.DtxDemarcationEndOk = peer.ask(s.DtxDemarcationEnd(xid.encode(), **flags), channel)
    return answer.status


def coordinate(peer: Peer, what: str, xid: Xid, channel: int = 1, **fields: Any) -> int:
    """commit, prepare or rollback; returns the status."""
    kind = getattr(s, f"DtxCoordination{what.capitalize()}")
    return int(peer.ask(kind(xid.encode(), **fields), channel).status)


def in_doubt(peer: Peer, channel: int = 1) -> list[bytes]:
    """All xids of a recovery scan."""
    found: list[bytes] = []
    flags = {"startscan": True}
    while True:
        answer: s.DtxCoordinationRecoverOk = peer.ask(s.DtxCoordinationRecover(**flags), channel)
        xids = answer.in_doubt["xids"]
        if not xids:
            return found
        found += [bytes(each) for each in xids]
        flags = {}


def work(peer: Peer, queue: str, xid: Xid, channel: int = 1) -> None:
    """A branch that takes `old` from the queue, publishes `new` to it, and is ended."""
    peer.publish("", queue, b"old", channel=channel)
    peer.settle(channel)
    assert start(peer, xid, channel) == OK
    swap(peer, queue, channel)
    assert end(peer, xid, channel) == OK


def swap(peer: Peer, queue: str, channel: int = 1) -> None:
    """Take a message from the queue, and publish `new` to it."""
    got = peer.get(queue, channel=channel)
    assert got.body == b"old"
    peer.send(m.BasicAck(got.method.delivery_tag), channel)
    peer.publish("", queue, b"new", channel=channel)
    peer.settle(channel)


def bodies(peer: Peer, queue: str, channel: int = 1) -> list[bytes]:
    """What is ready in the queue; it is gone afterwards."""
    found = []
    while peer.ask(m.QueueDeclare(queue=queue, passive=True), channel).message_count:
        found.append(peer.get(queue, no_ack=True, channel=channel).body)
    return found
