"""Rows of queues."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from harebell.admin.command import Row
from harebell.admin.limits import TREND_SECONDS
from harebell.admin.rows.common import GARBAGE_COLLECTION, NO_RATE, moment
from harebell.admin.rows.lazy import LazyRow
from harebell.admin.statistics import NO_RATES, QUEUE_STATS, Range, details, message_stats

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost


QUEUE_COLUMNS = (
    *("vhost", "name", "type", "durable", "auto_delete", "exclusive", "owner", "arguments"),
    *("policy", "operator_policy", "effective_policy_definition", "messages_ready"),
    *("messages_unacknowledged", "messages_delayed", "messages_leased", "messages_replaced"),
    *("messages", "consumers"),
    *("messages_unselected", "oldest_unselected_age", "oldest_seconds", "messages_trend"),
    *("durability", "state", "node", "messages_details", "messages_ready_details"),
    *("messages_unacknowledged_details", "message_stats", "idle_since", "consumer_utilisation"),
    *("consumer_capacity", "exclusive_consumer_tag", "single_active_consumer_tag"),
    *("head_message_timestamp", "memory", "message_bytes", "message_bytes_ready"),
    *("message_bytes_unacknowledged", "message_bytes_ram", "message_bytes_persistent"),
    *("message_bytes_paged_out", "messages_ram", "messages_ready_ram"),
    *("messages_unacknowledged_ram", "messages_persistent", "messages_paged_out"),
    *("recoverable_slaves", "backing_queue_status", "garbage_collection", "reductions"),
    "reductions_details",
)
"""What there is to say about a queue."""


class QueueRanges(NamedTuple):
    """Which samples are wanted of a queue.

    Args:
        lengths: of the numbers of messages.
        rates: of what happened to messages.
    """

    lengths: Range | None = None
    rates: Range | None = None


_NO_RANGES = QueueRanges()
_OBJECT_BYTES = 1_400
"""About what a queue without messages takes."""


def queue_row(
    context: AdminContext, vhost: VHost, queue: Queue, period: QueueRanges | None = None
) -> Row:
    """What there is to say about a queue."""
    from harebell.wire.json_values import shown_table

    period = period or _NO_RANGES
    quick = {name: make(context, vhost, queue, period) for name, make in _QUICK.items()}
    ready, total = quick["messages_ready"], quick["messages"]
    unacked, byte_count = quick["messages_unacknowledged"], quick["message_bytes"]
    unselected, unselected_ms = queue.unselected()
    owner: Any = queue.owner
    policies, series = vhost.policies, context.statistics.series(queue)
    in_memory = 0 if queue.durable else total
    return {
        **quick,
        "owner": "" if owner is None else owner.peer.connection_name,
        "arguments": shown_table(queue.arguments),
        "operator_policy": _policy_name(policies.policy_of(queue, operator=True)),
        "effective_policy_definition": policies.effective(queue),
        "messages_delayed": queue.delayed_count(),
        "messages_leased": queue.leased,
        "messages_replaced": queue.replaced_count(),
        "messages_unselected": unselected,
        "oldest_unselected_age": unselected_ms / 1000,
        "durability": str(policies.durability_of(queue)) if queue.durable else "",
        "node": context.broker.events.node,
        "messages_ready_details": details(series, "messages_ready", period.lengths, ready),
        "messages_unacknowledged_details": details(
            series, "messages_unacknowledged", period.lengths, unacked
        ),
        "idle_since": _idle_since(context, queue),
        "consumer_capacity": quick["consumer_utilisation"],
        "exclusive_consumer_tag": next(
            (each.tag for each in queue.consumers if each.exclusive), None
        ),
        "single_active_consumer_tag": queue.consumers.active_tag(),
        "head_message_timestamp": None,
        "memory": _OBJECT_BYTES + (0 if queue.durable else byte_count),
        "message_bytes_ready": _share(byte_count, ready, total),
        "message_bytes_unacknowledged": _share(byte_count, unacked, total),
        "message_bytes_ram": 0 if queue.durable else byte_count,
        "message_bytes_persistent": byte_count if queue.durable else 0,
        "message_bytes_paged_out": 0,
        "messages_ram": in_memory,
        "messages_ready_ram": 0 if queue.durable else ready,
        "messages_unacknowledged_ram": 0 if queue.durable else unacked,
        "messages_persistent": total - in_memory,
        "messages_paged_out": 0,
        "recoverable_slaves": None,
        "backing_queue_status": {"len": ready, "mode": "default", "version": 2},
        "garbage_collection": GARBAGE_COLLECTION,
        "reductions": 0,
        "reductions_details": NO_RATE,
    }


def oldest_seconds(queue: Queue, now_ms: int) -> float | None:
    """Return how long ago the oldest ready message arrived; None for no such message."""
    oldest = now_ms + 1
    for log, position in queue.heads_by_log():
        # A large message on disk is not read for this.
        if not (log.has_large and log.is_spilled(position)):
            oldest = min(log.time_of(position) or oldest, oldest)
    return None if oldest > now_ms else (now_ms - oldest) / 1000


def _total(queue: Queue) -> int:
    return queue.ready_count() + queue.unacked + queue.delayed_count() + queue.leased


def _type(queue: Queue) -> str:
    from harebell.model.queue.arguments import queue_type

    return queue_type(queue.arguments)


_Column = Callable[["AdminContext", "VHost", "Queue", QueueRanges], Any]
_QUICK: dict[str, _Column] = {
    "vhost": lambda _context, vhost, _queue, _period: vhost.name,
    "name": lambda _context, _vhost, queue, _period: queue.name,
    "type": lambda _context, _vhost, queue, _period: _type(queue),
    "durable": lambda _context, _vhost, queue, _period: queue.durable,
    "auto_delete": lambda _context, _vhost, queue, _period: queue.auto_delete,
    "exclusive": lambda _context, _vhost, queue, _period: queue.owner is not None,
    "policy": lambda _context, vhost, queue, _period: _policy_name(vhost.policies.policy_of(queue)),
    "state": lambda _context, _vhost, _queue, _period: "running",
    "messages": lambda _context, _vhost, queue, _period: _total(queue),
    "messages_ready": lambda _context, _vhost, queue, _period: queue.ready_count(),
    "messages_unacknowledged": lambda _context, _vhost, queue, _period: queue.unacked,
    "message_bytes": lambda _context, _vhost, queue, _period: queue.byte_count(),
    "oldest_seconds": lambda context, _vhost, queue, _period: oldest_seconds(
        queue, context.broker.clock.ms
    ),
    "consumers": lambda _context, _vhost, queue, _period: len(queue.consumers),
    "consumer_utilisation": lambda _context, _vhost, queue, _period: _utilisation(
        queue, queue.ready_count()
    ),
    "messages_trend": lambda context, _vhost, queue, _period: context.statistics.series(
        queue
    ).trend("messages", TREND_SECONDS),
    "messages_details": lambda context, _vhost, queue, period: details(
        context.statistics.series(queue), "messages", period.lengths, _total(queue)
    ),
    "message_stats": lambda context, _vhost, queue, period: message_stats(
        queue.counters, context.statistics.series(queue), QUEUE_STATS, period.rates
    ),
}
"""The columns of lists that are made alone, for a row is found, sorted and shown by a few."""


def _rate(name: str) -> _Column:
    def rate(context: AdminContext, _vhost: VHost, queue: Queue, _period: QueueRanges) -> Any:
        series = context.statistics.series(queue)
        return None if series is NO_RATES else series.rate(name)

    return rate


_LISTED = {
    **_QUICK,
    "message_stats.publish_details.rate": _rate("publish"),
    "message_stats.deliver_get_details.rate": _rate("deliver_get"),
}
"""With the rates that lists are sorted by, without the statistics that have them."""


def listed_row(
    context: AdminContext, vhost: VHost, queue: Queue, period: QueueRanges = _NO_RANGES
) -> LazyRow:
    """Return the row of a queue in a list."""
    return LazyRow(_LISTED, queue_row, context, vhost, queue, period)


def reduced_row(context: AdminContext, vhost: VHost, queue: Queue, *, totals: bool) -> Row:
    """What there is to say about a queue without statistics (`disable_stats`)."""
    from harebell.wire.json_values import shown_table

    row: Row = {
        "name": queue.name,
        "vhost": vhost.name,
        "type": _type(queue),
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "exclusive": queue.owner is not None,
        "arguments": shown_table(queue.arguments),
        "node": context.broker.events.node,
        "state": "running",
    }
    if totals:
        ready = queue.ready_count()
        row["messages_ready"] = ready
        row["messages_unacknowledged"] = queue.unacked
        row["messages"] = ready + queue.unacked + queue.delayed_count() + queue.leased
    return row


def head_timestamp(queue: Queue) -> int | None:
    """Return the timestamp of the first ready message, in seconds; None without one."""
    from harebell.front.convert import properties_of

    message = queue.head()
    if message is None:
        return None
    timestamp = properties_of(message).get("timestamp")
    if isinstance(timestamp, datetime):
        return int(timestamp.timestamp())
    return timestamp if isinstance(timestamp, int) else None


def _policy_name(policy: Any) -> str:
    return "" if policy is None else str(policy.name)


def _share(byte_count: int, part: int, whole: int) -> int:
    """Return the bytes of a part of the messages, which are taken to be of one size."""
    return byte_count * part // whole if whole else 0


def _utilisation(queue: Queue, ready: int) -> float:
    """Return 1.0 if a message could be delivered at once now, and 0.0 if it had to wait."""
    if not len(queue.consumers):
        return 0.0
    return 1.0 if not ready or any(each.ready() for each in queue.consumers) else 0.0


def _idle_since(context: AdminContext, queue: Queue) -> str | None:
    """Return since when nothing was counted for a queue; None while it works."""
    counters = queue.counters
    if sum(counters.values()) != counters.seen:
        return None
    at = context.statistics.idle_since(counters.moved_at)
    return None if at is None else moment(at)
