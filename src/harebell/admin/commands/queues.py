"""Commands for queues. The columns have the names of rabbitmqctl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from harebell.admin.arguments import NO_ARGUMENTS, Durable, InVhost, OnlyVhost, Table
from harebell.admin.catalog import QUEUES
from harebell.admin.command import MANAGEMENT, Argument, Row, plural
from harebell.admin.context import AdminContext, CommandRefused, checked_name, missing
from harebell.admin.ranges import Age, Increment, range_of
from harebell.admin.rows.details import queue_details, queue_incoming
from harebell.admin.rows.queues import (
    QueueRanges,
    QueueRow,
    head_timestamp,
    queue_row,
    reduced_row,
)
from harebell.base.limits import NAME_BYTES
from harebell.base.slices import Slices, at_hand, gathered

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

_ACTIONS = ("sync", "cancel_sync")


def find_queue(context: AdminContext, vhost: str, name: str) -> tuple[VHost, Queue]:
    """Return a queue and its vhost.

    Raises:
        CommandRefused: there is none.
    """
    where = context.vhost(vhost)
    queue = where.queues.get(name)
    if queue is None:
        raise missing(
            f"no queue '{name}' in vhost '{where.name}': `harebell queues list` shows all"
        )
    return where, queue


@QUEUES.listing(
    "queues",
    "GET /api/queues",
    "GET /api/queues/detailed",
    "GET /api/queues/{vhost}",
    tag=MANAGEMENT,
    row=QueueRow,
    shown=("vhost", "name", "type", "messages", "consumers", "durability", "policy"),
)
def list_queues(
    context: AdminContext,
    vhost: OnlyVhost = None,
    disable_stats: Annotated[bool, Argument("Leave out what is counted.")] = False,
    enable_queue_totals: Annotated[
        bool, Argument("With --disable-stats: do not leave out the numbers of messages.")
    ] = False,
) -> Slices[list[Any]]:
    """List queues by vhost and name."""
    if context.leaves_out_stats:
        disable_stats, enable_queue_totals = True, context.statistics.plan.queue_totals
    return gathered(
        reduced_row(context, each, queue, totals=enable_queue_totals)
        if disable_stats
        else queue_row(context, each, queue)
        for each in context.vhosts(vhost)
        for _, queue in sorted(each.queues.items())
        if not queue.deleted
    )


@QUEUES.command("GET /api/queues/{vhost}/{name}", tag=MANAGEMENT)
def show(
    context: AdminContext,
    name: str,
    vhost: InVhost = "/",
    lengths_age: Age = None,
    lengths_incr: Increment = None,
    msg_rates_age: Age = None,
    msg_rates_incr: Increment = None,
) -> Slices[Row]:
    """Show a queue with its consumers, and samples of its counters."""
    wanted = QueueRanges(
        range_of(lengths_age, lengths_incr, "lengths"),
        range_of(msg_rates_age, msg_rates_incr, "msg_rates"),
    )
    where, queue = find_queue(context, vhost, name)
    if context.leaves_out_stats:
        return at_hand(
            reduced_row(context, where, queue, totals=context.statistics.plan.queue_totals)
        )
    return _shown(context, where, queue, wanted)


def _shown(context: AdminContext, where: VHost, queue: Queue, wanted: QueueRanges) -> Slices[Row]:
    found = yield from queue_details(context, queue, wanted.rates)
    return {
        **queue_row(context, where, queue, wanted),
        "head_message_timestamp": head_timestamp(queue),
        "oldest_seconds": oldest_seconds(queue, context.broker.clock.ms),
        "consumer_details": found.consumers,
        "incoming": queue_incoming(context, where, queue, wanted.rates),
        "deliveries": found.deliveries,
    }


def declared(known: Mapping[str, Any]) -> str:
    """Say what a declaration of a queue did."""
    done = "was declared" if known["made"] else "is there already, and like that"
    return f"queue '{known['name']}' in vhost '{known['vhost']}' {done}"


@QUEUES.command("PUT /api/queues/{vhost}/{name}", tag=MANAGEMENT, done=declared)
def declare(
    context: AdminContext,
    name: str,
    vhost: InVhost = "/",
    type_: Annotated[
        str | None,
        Argument(
            "Its type.  [default: as the vhost says, else classic]",
            choices=("classic", "quorum", "stream"),
        ),
    ] = None,
    durable: Durable = True,
    auto_delete: Annotated[bool, Argument("It goes with its last consumer.")] = False,
    arguments: Table = NO_ARGUMENTS,
) -> Row:
    """Make a queue, or see that there is one like that."""
    from harebell.model.queue.arguments import QUEUE_TYPE

    where = context.vhost(vhost)
    checked_name(name, "queue", NAME_BYTES)
    context.check_permission(where, "configure", "queue", name)
    made = name not in where.queues
    if made:
        where.check_room(name)
    wanted = dict(arguments)
    if type_ is not None:
        wanted[QUEUE_TYPE] = type_
    queue = where.declare_queue(name, durable=durable, auto_delete=auto_delete, arguments=wanted)
    queue.declared()
    if made:
        context.log("info", f"queue '{name}' in vhost '{where.name}' was declared")
    return {**queue_row(context, where, queue), "made": made}


def _purged(known: Mapping[str, Any]) -> str:
    count = plural(known["messages"], "message")
    return f"queue '{known['name']}' in vhost '{known['vhost']}' was purged of {count}"


@QUEUES.command("DELETE /api/queues/{vhost}/{name}/contents", tag=MANAGEMENT, done=_purged)
def purge(context: AdminContext, name: str, vhost: InVhost = "/") -> Row:
    """Drop all messages of a queue that are ready, or wait to be tried again."""
    context.check_permission(context.vhost(vhost), "read", "queue", name)
    where, queue = find_queue(context, vhost, name)
    count = queue.purge()
    queue.sync_soon()
    context.log("info", f"queue '{queue.name}' in vhost '{where.name}' was purged")
    return {"vhost": where.name, "name": queue.name, "messages": count}


def _retried(known: Mapping[str, Any]) -> str:
    count = plural(known["messages"], "message")
    return f"queue '{known['name']}' in vhost '{known['vhost']}' delivers {count} again now"


@QUEUES.command(tag=MANAGEMENT, done=_retried)
def retry_now(context: AdminContext, name: str, vhost: InVhost = "/") -> Row:
    """Deliver again now what waits to be tried again."""
    where, queue = find_queue(context, vhost, name)
    count = queue.retry_now()
    context.log("info", f"waiting in queue '{queue.name}' in vhost '{where.name}' was ended")
    return {"vhost": where.name, "name": queue.name, "messages": count}


def _deleted(known: Mapping[str, Any]) -> str:
    count = plural(known["messages"], "message")
    return f"queue '{known['name']}' in vhost '{known['vhost']}' was deleted with {count}"


@QUEUES.command("DELETE /api/queues/{vhost}/{name}", tag=MANAGEMENT, done=_deleted)
def delete(
    context: AdminContext,
    name: str,
    vhost: InVhost = "/",
    if_empty: Annotated[bool, Argument("Only if it has no messages.")] = False,
    if_unused: Annotated[bool, Argument("Only if it has no consumer.")] = False,
) -> Row:
    """Delete a queue with all its messages."""
    context.check_permission(context.vhost(vhost), "configure", "queue", name)
    where, queue = find_queue(context, vhost, name)
    owner: Any = queue.owner
    count = where.delete_queue(queue.name, owner, if_unused=if_unused, if_empty=if_empty)
    context.log("info", f"queue '{queue.name}' in vhost '{where.name}' was deleted")
    return {"vhost": where.name, "name": queue.name, "messages": count}


@QUEUES.over_http("POST /api/queues/{vhost}/{name}/actions", tag=MANAGEMENT)
def queue_action(context: AdminContext, vhost: str, name: str, action: str) -> Row:
    """Synchronise mirrors of a queue: there is one broker, so nothing has to be done."""
    find_queue(context, vhost, name)
    if action not in _ACTIONS:
        raise CommandRefused(f"the action '{action}' is unknown: it is one of {_ACTIONS}")
    return {}


# --- counters -------------------------------------------------------------------------------------


class QueueCountersRow(TypedDict):
    """The counters of a queue since the start, and what is in it now."""

    vhost: str
    name: str
    messages_ready: int
    messages_unacknowledged: int
    consumers: int
    message_bytes: int
    oldest_seconds: float | None
    publish: int
    deliver_get: int
    redeliver: int
    ack: int


def oldest_seconds(queue: Queue, now_ms: int) -> float | None:
    """Return how long ago the oldest ready message arrived; None for no such message."""
    moments = [
        # A large message on disk is not read for this.
        log.time_of(position)
        for log, position in queue.heads_by_log()
        if not (log.has_large and log.far(position))
    ]
    oldest = min((moment for moment in moments if moment), default=None)
    return None if oldest is None else max(now_ms - oldest, 0) / 1000


def _counters_row(queue: Queue, now_ms: int) -> QueueCountersRow:
    counted = queue.counters
    return {
        "vhost": queue.vhost,
        "name": queue.name,
        "messages_ready": queue.ready_count(),
        "messages_unacknowledged": queue.unacked,
        "consumers": len(queue.consumers),
        "message_bytes": queue.byte_count(),
        "oldest_seconds": oldest_seconds(queue, now_ms),
        "publish": counted.publish,
        "deliver_get": (
            counted.deliver + counted.deliver_no_ack + counted.get + counted.get_no_ack
        ),
        "redeliver": counted.redeliver,
        "ack": counted.ack,
    }


@QUEUES.command(tag=MANAGEMENT, row=QueueCountersRow)
def counters(
    context: AdminContext,
    vhost: OnlyVhost = None,
) -> Slices[list[QueueCountersRow]]:
    """Print the counters of all queues since the start, from which rates are made."""
    now_ms = context.broker.clock.ms
    return gathered(
        _counters_row(queue, now_ms)
        for each in context.vhosts(vhost)
        for _, queue in sorted(each.queues.items())
        if not queue.deleted
    )
