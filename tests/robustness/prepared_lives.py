"""Branches of distributed transactions over lives that end by kill -9, and what must hold then.

A life publishes some messages, lets a branch take one and bring one, prepares it and ends it, again
and again, until it is killed. What was answered by then is known, and what was asked for and not
answered; the next life has to fit.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from harebell.model.xa.xid import Xid
from harebell.wire.v09 import methods as m
from harebell.wire.v09.content import BasicProperties
from tests.conformance.sites import SocketWire
from tests.conformance.v010t.branches import coordinate, end, in_doubt, selected, start
from tests.conformance.v010t.peer import Peer

QUEUE = "q"
_LASTING = BasicProperties(delivery_mode=2)


class LostError(Exception):
    """The broker has died under our hands."""


class _Place:
    """Where the peers of one life connect."""

    def __init__(self, port: int) -> None:
        self._port = port

    def connect(self) -> SocketWire:
        """A new connection."""
        return SocketWire(self._port)


@dataclass
class Work:
    """A branch: what it takes and brings, and what is known of it.

    Attributes:
        prepared: the prepare was answered; False when it was only asked for.
        ending: "commit" or "rollback" when that was asked for.
    """

    xid: Xid
    takes: bytes
    brings: bytes
    prepared: bool = False
    ending: str = ""


class Branches:
    """What is known over all lives.

    Args:
        seed: of what is chosen.
        vhost: of the queue.

    Attributes:
        ready: messages that are in the queue, as everybody was told.
        open: the branch of which not everything was answered; None between branches.
        ended: how many branches were completed.
        survived: how many were found prepared by another life.
    """

    def __init__(self, seed: int, vhost: str = "/") -> None:
        self._rng = Random(seed)
        self._vhost = vhost
        self._number = 0
        self.ready: set[bytes] = set()
        self.open: Work | None = None
        self._maybe: set[bytes] = set()
        self.ended = 0
        self.survived = 0

    def live(self, port: int) -> None:
        """Look at what is there, then work until the broker dies.

        Raises:
            LostError: it has died.
        """
        try:
            peer = Peer(_Place(port), _Place(port).connect()).open(self._vhost)  # type: ignore[arg-type]
        except (AssertionError, OSError) as error:
            raise LostError from error
        try:
            peer.queue(QUEUE, durable=True)
            selected(peer)
            self._look(peer)
            while True:
                self._round(peer)
        except AssertionError as error:
            if peer.ended:
                raise LostError from error
            raise
        finally:
            peer.wire.drop()

    def settle(self, port: int) -> None:
        """The last life: complete what is open, and compare all that is there."""
        peer = Peer(_Place(port), _Place(port).connect()).open(self._vhost)  # type: ignore[arg-type]
        peer.queue(QUEUE, durable=True)
        self._look(peer)
        peer.wire.drop()

    # --- work -----------------------------------------------------------------------------------

    def _body(self) -> bytes:
        self._number += 1
        return b"%d " % self._number + self._rng.randbytes(self._rng.choice((1, 200, 9_000)))

    def _publish(self, peer: Peer, body: bytes) -> None:
        peer.publish("", QUEUE, body, _LASTING)
        peer.settle()

    def _round(self, peer: Peer) -> None:
        body = self._body()
        self._maybe.add(body)
        self._publish(peer, body)
        self._maybe.discard(body)
        self.ready.add(body)
        xid = Xid(1, b"%d" % self._number, b"")
        start(peer, xid)
        got = peer.get(QUEUE)
        peer.send(m.BasicAck(got.method.delivery_tag))
        work = Work(xid, got.body, self._body())
        self._publish(peer, work.brings)
        end(peer, xid)
        self.open = work
        assert coordinate(peer, "prepare", xid) == 0
        work.prepared = True
        self._end(peer, work, self._rng.choice(("commit", "rollback")))

    def _end(self, peer: Peer, work: Work, how: str) -> None:
        work.ending = how
        assert coordinate(peer, how, work.xid) == 0
        self._over(work)

    def _over(self, work: Work) -> None:
        if work.ending == "commit":
            self.ready.discard(work.takes)
            self.ready.add(work.brings)
        self.open = None
        self.ended += 1

    # --- what must hold -------------------------------------------------------------------------

    def _look(self, peer: Peer) -> None:
        """What this life has found fits to what was told before, and nothing is open any more."""
        known = in_doubt(peer)
        work = self.open
        if work is None:
            assert known == [], "a branch is back that was ended"
        else:
            self._judge(peer, work, known)
        found = self._drain(peer)
        assert self.ready <= found, f"{len(self.ready - found)} messages are lost"
        extra = found - self.ready
        assert extra <= self._maybe, f"{len(extra - self._maybe)} messages came from nowhere"
        self.ready = found
        self._maybe.clear()

    def _judge(self, peer: Peer, work: Work, known: list[bytes]) -> None:
        assert known in ([], [work.xid.encode()]), known
        if known:
            self.survived += 1
            if not work.ending:
                work.ending = self._rng.choice(("commit", "rollback"))
            self._end(peer, work, work.ending)
            return
        assert not work.prepared or work.ending, "a prepared branch is lost"
        if not work.prepared:
            work.ending = "rollback"
        self._over(work)

    def _drain(self, peer: Peer) -> set[bytes]:
        """What is in the queue, which stays there."""
        found = []
        while True:
            peer.send(m.BasicGet(queue=QUEUE))
            frame = peer.next_frame("basic.get-ok or get-empty")
            peer.reader.data[:0] = frame.octets
            peer._received[frame.channel] -= 1
            if frame.payload[:4] == bytes.fromhex("003c 0048"):
                peer.expect(m.BasicGetEmpty)
                break
            got = peer.expect_content(m.BasicGetOk)
            found.append((got.method.delivery_tag, got.body))
        for tag, _ in found:
            peer.send(m.BasicReject(tag, requeue=True))
        peer.settle()
        assert len({body for _, body in found}) == len(found), "a message is there twice"
        return {body for _, body in found}
