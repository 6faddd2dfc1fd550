"""Making queues: which kind the arguments of a declaration mean, and one of that kind.

A declaration and a restart both come through here, so that a queue comes back as what it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harebell.base.limits import STREAM_SEGMENT_LEAST_BYTES
from harebell.base.ports import Log, Store
from harebell.model.queue.arguments import GROUP_KEY, MAX_PRIORITY, SEGMENT_OCTETS, queue_type
from harebell.model.queue.classic import ClassicQueue
from harebell.model.queue.grouped import GroupedQueue
from harebell.model.queue.kind import Queue
from harebell.model.queue.priority import PriorityQueue
from harebell.model.queue.quorum import QuorumQueue
from harebell.model.queue.stream import StreamQueue
from harebell.model.queue.tracking import OFFSET_ROWS, Tracking


def kind_of(arguments: Mapping[str, Any]) -> str:
    """The name of the kind that checked arguments mean; what stands in the definitions."""
    kind = queue_type(arguments)
    if kind == ClassicQueue.KIND and MAX_PRIORITY in arguments:
        return PriorityQueue.KIND
    if kind == ClassicQueue.KIND and GROUP_KEY in arguments:
        return GroupedQueue.KIND
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
    queue = maker(name, vhost, store, identity, options, restored)
    queue.identity = identity
    return queue


def _classic(
    name: str,
    vhost: str,
    store: Store,
    identity: str,
    options: Mapping[str, Any],
    restored: bool,
) -> Queue:
    return ClassicQueue(
        name, vhost, store.open_log(identity, durable=options["durable"]), **options
    )


def _grouped(
    name: str,
    vhost: str,
    store: Store,
    identity: str,
    options: Mapping[str, Any],
    restored: bool,
) -> Queue:
    return GroupedQueue(
        name, vhost, store.open_log(identity, durable=options["durable"]), **options
    )


def _priority(
    name: str,
    vhost: str,
    store: Store,
    identity: str,
    options: Mapping[str, Any],
    restored: bool,
) -> Queue:
    durable: bool = options["durable"]

    def open_level(level: int) -> Log:
        return store.open_log(f"{identity}-{level}", durable=durable)

    # RabbitMQ takes 0 as the smallest that means anything.
    most = max(1, options["arguments"][MAX_PRIORITY])
    return PriorityQueue(name, vhost, open_level, most, restored=restored and durable, **options)


def _quorum(
    name: str,
    vhost: str,
    store: Store,
    identity: str,
    options: Mapping[str, Any],
    restored: bool,
) -> Queue:
    log = store.open_log(identity, durable=options["durable"], keep_all=True)
    return QuorumQueue(name, vhost, log, store.commit, **options)


def _stream(
    name: str,
    vhost: str,
    store: Store,
    identity: str,
    options: Mapping[str, Any],
    restored: bool,
) -> Queue:
    wanted = options["arguments"].get(SEGMENT_OCTETS, 0) or store.stream_segment_octets
    octets = max(wanted, STREAM_SEGMENT_LEAST_BYTES)
    log = store.open_log(identity, durable=options["durable"], keep_all=True, segment_octets=octets)
    offsets = {}
    if restored:
        for (of_vhost, of_queue, tag), fields in store.definitions.load(OFFSET_ROWS):
            if (of_vhost, of_queue) == (vhost, name):
                offsets[tag] = fields["position"]
    tracking = Tracking(vhost, name, store.definitions, store.commit, offsets)
    return StreamQueue(name, vhost, log, store.commit, tracking, octets, **options)


_Maker = Callable[[str, str, Store, str, Mapping[str, Any], bool], Queue]
_MAKERS: dict[str, _Maker] = {
    ClassicQueue.KIND: _classic,
    PriorityQueue.KIND: _priority,
    GroupedQueue.KIND: _grouped,
    QuorumQueue.KIND: _quorum,
    StreamQueue.KIND: _stream,
}
