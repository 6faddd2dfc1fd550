"""The queue factory: choose the queue type by the arguments, and assemble the queue.

A type is a message order; quorum queues also have a part, and streams a class of their own.
Declarations and restarts both use this module, so a restart restores the queue that was declared.
What only some types need is imported with the first queue of such a type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from harebell.base.ports import Commit, Log, Store
from harebell.model.limits import LAST_VALUE_SEGMENT_BYTES, STREAM_SEGMENT_MIN_BYTES
from harebell.model.queue.arguments import (
    CLASSIC,
    GROUP_KEY,
    MAX_PRIORITY,
    QUORUM,
    SEGMENT_SIZE,
    STREAM,
    last_value_key,
    queue_type,
)
from harebell.model.queue.contract import Queue
from harebell.model.queue.order.contract import MessageOrder
from harebell.model.queue.order.fifo import FifoOrder
from harebell.model.queue.order.keyed import KeyedOrder
from harebell.model.queue.order.last_value import LastValueOrder
from harebell.model.queue.queue import MessageQueue

PRIORITY = "priority"
LAST_VALUE = "last-value"
KEYED = "grouped"
"""The name in the definitions, from before ordering keys were called so."""


class Plan(Struct, frozen=True):
    """The arguments of `make_queue`."""

    name: str
    vhost: str
    store: Store
    identity: str
    options: Mapping[str, Any]
    restored: bool

    def log(self, **how: Any) -> Log:
        """Open the log of the queue."""
        return self.store.open_log(self.identity, durable=self.options["durable"], **how)

    def level(self, level: int) -> Log:
        """Open the log of one level of a priority queue."""
        return self.store.open_log(f"{self.identity}-{level}", durable=self.options["durable"])


def kind_of(arguments: Mapping[str, Any]) -> str:
    """Return the type name that checked arguments mean, as stored in the definitions."""
    kind = queue_type(arguments)
    if kind == CLASSIC and MAX_PRIORITY in arguments:
        return PRIORITY
    if kind == CLASSIC and GROUP_KEY in arguments:
        return KEYED
    if kind == CLASSIC and last_value_key(arguments):
        return LAST_VALUE
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
    """Make a queue of a type, and open its log.

    Args:
        kind_name: the result of `kind_of`.
        name: the queue's name.
        vhost: the name of its vhost.
        store: opens logs.
        identity: the identity of its log, from `store.new_identity()` or the definitions.
        options: the other arguments of `Queue`, `durable` among them.
        restored: whether the queue existed before and may have messages.

    Raises:
        LookupError: this version has no such type.
    """
    maker = _MAKERS.get(kind_name)
    if maker is None:
        raise LookupError(f"there is no queue kind '{kind_name}'")
    queue = maker(Plan(name, vhost, store, identity, options, restored))
    queue.identity = identity
    return queue


def _classic(plan: Plan) -> Queue:
    return classic_queue(plan.name, plan.vhost, plan.log(), **plan.options)


def _keyed(plan: Plan) -> Queue:
    return keyed_queue(plan.name, plan.vhost, plan.log(), **plan.options)


def _last_value(plan: Plan) -> Queue:
    log = plan.log(segment_bytes=LAST_VALUE_SEGMENT_BYTES)
    return last_value_queue(plan.name, plan.vhost, log, plan.store.commit, **plan.options)


def _priority(plan: Plan) -> Queue:
    # RabbitMQ treats 0 as the smallest valid value.
    max_level = max(1, plan.options["arguments"][MAX_PRIORITY])
    # The levels of a transient queue have no messages after a restart, so no log is opened.
    restored = plan.restored and plan.options["durable"]
    return priority_queue(
        plan.name, plan.vhost, plan.level, max_level, restored=restored, **plan.options
    )


def _quorum(plan: Plan) -> Queue:
    compact = bool(last_value_key(plan.options["arguments"]))
    log = plan.log(keep_all=True, segment_bytes=LAST_VALUE_SEGMENT_BYTES if compact else 0)
    return quorum_queue(plan.name, plan.vhost, log, plan.store.commit, **plan.options)


def classic_queue(name: str, vhost: str, log: Log, **options: Any) -> MessageQueue:
    """Make a first-in-first-out queue."""
    order = FifoOrder(log, options.get("durable", False))
    return MessageQueue(CLASSIC, name, vhost, order, **options)


def keyed_queue(name: str, vhost: str, log: Log, **options: Any) -> MessageQueue:
    """Make a queue with ordering keys."""
    return MessageQueue(KEYED, name, vhost, _keyed_order(log, options), **options)


def last_value_queue(
    name: str, vhost: str, log: Log, commit: Commit, **options: Any
) -> MessageQueue:
    """Make a queue that keeps the newest message of each key."""
    order = _last_value_order(log, commit, options)
    return MessageQueue(LAST_VALUE, name, vhost, order, **options)


def priority_queue(
    name: str,
    vhost: str,
    open_level: Callable[[int], Log],
    max_level: int,
    *,
    restored: bool = False,
    **options: Any,
) -> MessageQueue:
    """Make a queue with priorities, see `PriorityOrder`."""
    from harebell.model.queue.order.priority import PriorityOrder

    order = PriorityOrder(
        open_level,
        max_level,
        options.get("durable", False),
        restored=restored,
        arguments=options.get("arguments") or {},
    )
    return MessageQueue(PRIORITY, name, vhost, order, **options)


def quorum_queue(name: str, vhost: str, log: Log, commit: Commit, **options: Any) -> MessageQueue:
    """Make a quorum queue, with ordering keys or last values if its arguments have them."""
    arguments = options.get("arguments") or {}
    if last_value_key(arguments):
        order: MessageOrder = _last_value_order(log, commit, options)
        return MessageQueue(QUORUM, name, vhost, order, commit, **options)
    if arguments.get(GROUP_KEY):
        return MessageQueue(QUORUM, name, vhost, _keyed_order(log, options), commit, **options)
    from harebell.model.queue.order.counted import CountedOrder

    order = CountedOrder(log, options.get("durable", False))
    return MessageQueue(QUORUM, name, vhost, order, commit, **options)


def _keyed_order(log: Log, options: Mapping[str, Any]) -> KeyedOrder:
    key_name = options["arguments"][GROUP_KEY]
    return KeyedOrder(log, options.get("durable", False), key_name)


def _last_value_order(log: Log, commit: Commit, options: Mapping[str, Any]) -> LastValueOrder:
    durable = options.get("durable", False)
    key_name = last_value_key(options["arguments"])
    return LastValueOrder(log, durable, key_name, commit if durable else None)


def _stream(plan: Plan) -> Queue:
    from harebell.model.queue.stream import StreamQueue
    from harebell.model.queue.tracking import OFFSET_ROWS, Tracking

    store = plan.store
    declared = plan.options["arguments"].get(SEGMENT_SIZE, 0) or store.stream_segment_bytes
    # Smaller segments would be too many files.
    byte_count = max(declared, STREAM_SEGMENT_MIN_BYTES)
    # Each message of a stream is stored, whatever its delivery mode.
    log = plan.log(keep_all=True, segment_bytes=byte_count)
    offsets = {}
    if plan.restored:
        for (vhost, queue, tag), fields in store.definitions.load(OFFSET_ROWS):
            if (vhost, queue) == (plan.vhost, plan.name):
                offsets[tag] = fields["position"]
    tracking = Tracking(plan.vhost, plan.name, store.definitions, store.commit, offsets)
    return StreamQueue(
        plan.name, plan.vhost, log, store.commit, tracking, byte_count, **plan.options
    )


_MAKERS: dict[str, Callable[[Plan], Queue]] = {
    CLASSIC: _classic,
    PRIORITY: _priority,
    KEYED: _keyed,
    LAST_VALUE: _last_value,
    QUORUM: _quorum,
    STREAM: _stream,
}
