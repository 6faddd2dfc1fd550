"""Making queues: which kind the arguments of a declaration mean, and one of that kind.

A declaration and a restart both come through here, so that a queue comes back as what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from harebell.base.limits import STREAM_SEGMENT_LEAST_BYTES
from harebell.base.ports import Log, Store
from harebell.model.queue.arguments import GROUP_KEY, MAX_PRIORITY, SEGMENT_OCTETS, queue_type
from harebell.model.queue.classic import ClassicQueue
from harebell.model.queue.key_leases import KeyLeasedQueue
from harebell.model.queue.kind import Queue
from harebell.model.queue.priority import PriorityQueue
from harebell.model.queue.quorum import QuorumQueue
from harebell.model.queue.stream import StreamQueue
from harebell.model.queue.tracking import OFFSET_ROWS, Tracking


@dataclass(frozen=True, slots=True)
class Plan:
    """A queue that is to be made; the arguments of `make_queue`."""

    name: str
    vhost: str
    store: Store
    identity: str
    options: Mapping[str, Any]
    restored: bool

    def log(self, **how: Any) -> Log:
        """The queue's log."""
        return self.store.open_log(self.identity, durable=self.options["durable"], **how)

    def level(self, level: int) -> Log:
        """The log of one level of a priority queue."""
        return self.store.open_log(f"{self.identity}-{level}", durable=self.options["durable"])


def kind_of(arguments: Mapping[str, Any]) -> str:
    """The name of the kind that checked arguments mean; what stands in the definitions."""
    kind = queue_type(arguments)
    if kind == ClassicQueue.KIND and MAX_PRIORITY in arguments:
        return PriorityQueue.KIND
    if kind == ClassicQueue.KIND and GROUP_KEY in arguments:
        return KeyLeasedQueue.KIND
    return kind


def make_queue(
    kind_name: str,
    name: str,
    vhost: str,
    store: Store,
    identity: str,
    options: Mapping[str, Any],
    *,
    restored: bool = False,
) -> Queue:
    """A queue of a kind over its log, which is opened here.

    Args:
        kind_name: from `kind_of`.
        name: the queue's name.
        vhost: the name of its vhost.
        store: opens logs.
        identity: of its log, from `store.new_identity()` or the definitions.
        options: the other arguments of `Queue`, `durable` among them.
        restored: whether the queue was there before, perhaps with messages.

    Raises:
        LookupError: there is no such kind in this version.
    """
    maker = _MAKERS.get(kind_name)
    if maker is None:
        raise LookupError(f"there is no queue kind '{kind_name}'")
    queue = maker(Plan(name, vhost, store, identity, options, restored))
    queue.identity = identity
    return queue


def _classic(plan: Plan) -> Queue:
    return ClassicQueue(plan.name, plan.vhost, plan.log(), **plan.options)


def _grouped(plan: Plan) -> Queue:
    return KeyLeasedQueue(plan.name, plan.vhost, plan.log(), **plan.options)


def _priority(plan: Plan) -> Queue:
    # RabbitMQ takes 0 as the smallest that means anything.
    most = max(1, plan.options["arguments"][MAX_PRIORITY])
    restored = plan.restored and plan.options["durable"]
    return PriorityQueue(plan.name, plan.vhost, plan.level, most, restored=restored, **plan.options)


def _quorum(plan: Plan) -> Queue:
    log = plan.log(keep_all=True)
    return QuorumQueue(plan.name, plan.vhost, log, plan.store.commit, **plan.options)


def _stream(plan: Plan) -> Queue:
    store = plan.store
    wanted = plan.options["arguments"].get(SEGMENT_OCTETS, 0) or store.stream_segment_octets
    octets = max(wanted, STREAM_SEGMENT_LEAST_BYTES)
    log = plan.log(keep_all=True, segment_octets=octets)
    offsets = {}
    if plan.restored:
        for (vhost, queue, tag), fields in store.definitions.load(OFFSET_ROWS):
            if (vhost, queue) == (plan.vhost, plan.name):
                offsets[tag] = fields["position"]
    tracking = Tracking(plan.vhost, plan.name, store.definitions, store.commit, offsets)
    return StreamQueue(plan.name, plan.vhost, log, store.commit, tracking, octets, **plan.options)


_MAKERS: dict[str, Callable[[Plan], Queue]] = {
    ClassicQueue.KIND: _classic,
    PriorityQueue.KIND: _priority,
    KeyLeasedQueue.KIND: _grouped,
    QuorumQueue.KIND: _quorum,
    StreamQueue.KIND: _stream,
}
