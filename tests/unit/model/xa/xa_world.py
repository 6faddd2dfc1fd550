"""A broker in memory with branches, and a session that works on them."""

from __future__ import annotations

from typing import NamedTuple

from harebell.base.gauge import Gauge
from harebell.base.message import PERSISTENT, Message, Properties
from harebell.base.slices import at_once
from harebell.model.broker import Broker
from harebell.model.queue.contract import Queue
from harebell.model.transaction import ACCEPT
from harebell.model.xa.association import Association
from harebell.model.xa.branch import OPERATOR, Asker, Branch
from harebell.model.xa.states import State, Status
from harebell.model.xa.xid import Xid
from harebell.store.log.memory import MemoryStore
from tests.unit.model.things import headers_of

TX = Xid(0, b"tx", b"1")
OTHER = Xid(0, b"tx", b"2")


class Someone(NamedTuple):
    """A user."""

    name: str
    tags: tuple[str, ...] = ()


GUEST = Someone("guest")
ANOTHER = Someone("another", ("monitoring", "management"))
ADMIN = Someone("admin", ("administrator",))


def message(body: bytes) -> Message:
    return Message("", "q", Properties(b"\0\0", delivery_mode=PERSISTENT), body)


class Session(Association):
    """A session whose work is its branch's, while it has one."""

    def __init__(self, world: XaWorld, user: Asker = GUEST) -> None:
        super().__init__(world.broker.branches, "/", user)
        self.select()

    def work_on(self) -> Branch:
        assert self.branch is not None
        return self.branch

    def publish(self, queue: Queue, body: bytes) -> None:
        self.work_on().publish(message(body), (queue,), 0)

    def take(self, queue: Queue, kind: int = ACCEPT) -> bytes:
        """Get a message, and settle it as part of the branch."""
        got = queue.get()
        assert got is not None
        self.work_on().settle([_Entry(queue, got[1])], kind)
        return got[0].body


class _Entry:
    def __init__(self, queue: Queue, position: int) -> None:
        self.queue = queue
        self.position = position


class XaWorld:
    """A broker in memory."""

    def __init__(self) -> None:
        gauge = Gauge()
        self.broker = Broker(MemoryStore(gauge), gauge, headers_of)
        self.branches = self.broker.branches
        self.vhost = self.broker.vhosts["/"]

    def queue(self, name: str = "q", **options: object) -> Queue:
        return self.vhost.declare_queue(name, durable=True, **options)  # type: ignore[arg-type]

    def session(self, user: Asker = GUEST) -> Session:
        return Session(self, user)

    def state(self, xid: Xid = TX) -> State:
        found = self.branches.find("/", xid)
        return State.UNKNOWN if found is None else found.state

    def pass_time(self, seconds: float) -> None:
        self.broker.clock.steady += int(seconds * 1000)
        self.broker.timers.run()

    def prepare(self, xid: Xid = TX) -> Status:
        return at_once(self.branches.prepare("/", xid, OPERATOR)).status

    def commit(self, xid: Xid = TX, *, one_phase: bool = False) -> Status:
        return at_once(self.branches.commit("/", xid, OPERATOR, one_phase=one_phase)).status

    def rollback(self, xid: Xid = TX) -> Status:
        return at_once(self.branches.rollback("/", xid, OPERATOR)).status
