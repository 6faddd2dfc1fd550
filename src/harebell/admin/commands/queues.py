"""Commands for queues. The columns have the names of rabbitmqctl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import NO_ARGUMENTS, Durable, InVhost, OnlyVhost, Table
from harebell.admin.catalog import QUEUES
from harebell.admin.command import MANAGEMENT, Argument, Row, plural
from harebell.admin.context import (
    AdminContext,
    CommandRefused,
    checked_name,
    checked_table,
    missing,
)
from harebell.admin.ranges import Age, Increment, range_of
from harebell.admin.rows.details import queue_details, queue_incoming
from harebell.admin.rows.queues import (
    QUEUE_COLUMNS,
    QueueRanges,
    head_timestamp,
    listed_row,
    oldest_seconds,
    queue_row,
    reduced_row,
)
from harebell.base.limits import NAME_BYTES
from harebell.base.slices import Slices, at_hand, gathered, steps

if TYPE_CHECKING:
    from harebell.front.operations.caller import Caller
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
        raise missing_queue(where, name)
    return where, queue


def missing_queue(vhost: VHost, name: str) -> CommandRefused:
    """Return the refusal for a queue that does not exist."""
    return missing(f"no queue '{name}' in vhost '{vhost.name}': `harebell queues list` shows all")


@QUEUES.listing(
    "queues",
    "GET /api/queues",
    "GET /api/queues/detailed",
    "GET /api/queues/{vhost}",
    tag=MANAGEMENT,
    row=QUEUE_COLUMNS,
    shown=("vhost", "name", "type", "messages", "consumers", "durability", "policy"),
)
def list_queues(
    context: AdminContext,
    vhost: OnlyVhost = None,
    disable_stats: Annotated[bool, Argument("Leave out what is counted.")] = False,
    enable_queue_totals: Annotated[
        bool, Argument("With --disable-stats: do not leave out the numbers of messages.")
    ] = False,
    lengths_age: Age = None,
    lengths_incr: Increment = None,
) -> Slices[list[Any]]:
    """List queues by vhost and name."""
    period = QueueRanges(range_of(lengths_age, lengths_incr, "lengths"))
    if context.leaves_out_stats:
        disable_stats, enable_queue_totals = True, context.statistics.plan.queue_totals
    return gathered(
        reduced_row(context, each, queue, totals=enable_queue_totals)
        if disable_stats
        else listed_row(context, each, queue, period)
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
    period = QueueRanges(
        range_of(lengths_age, lengths_incr, "lengths"),
        range_of(msg_rates_age, msg_rates_incr, "msg_rates"),
    )
    where, queue = find_queue(context, vhost, name)
    if context.leaves_out_stats:
        return at_hand(
            reduced_row(context, where, queue, totals=context.statistics.plan.queue_totals)
        )
    return _shown(context, where, queue, period)


def _shown(context: AdminContext, where: VHost, queue: Queue, period: QueueRanges) -> Slices[Row]:
    details = yield from queue_details(context, queue, period.rates)
    # Other queues get eras when a client asks for them by AMQP: that writes something.
    eras = {"eras": where.recorder.histories.of(queue)} if queue.kind == "stream" else {}
    return {
        **queue_row(context, where, queue, period),
        "head_message_timestamp": head_timestamp(queue),
        "consumer_details": details.consumers,
        "incoming": queue_incoming(context, where, queue, period.rates),
        "deliveries": details.deliveries,
        **eras,
    }


def declared(outcome: Mapping[str, Any]) -> str:
    """Say what a declaration of a queue did."""
    done = "was declared" if outcome["made"] else "is there already, and like that"
    return f"queue '{outcome['name']}' in vhost '{outcome['vhost']}' {done}"


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
    from harebell.front.common.names import clean
    from harebell.front.operations.declare import QueueOptions, declare_queue
    from harebell.model.queue.arguments import QUEUE_TYPE

    where = context.vhost(vhost)
    name = checked_name(clean(name), "queue", NAME_BYTES)
    given = dict(arguments)
    if type_ is not None:
        given[QUEUE_TYPE] = type_
    taken = checked_table(given, f"the arguments of queue '{name}'")
    made = name not in where.queues
    options = QueueOptions(durable=durable, auto_delete=auto_delete, arguments=taken)
    queue = declare_queue(context.caller(where), name, options)
    queue.declared()
    if made:
        context.log("info", f"queue '{name}' in vhost '{where.name}' was declared")
    return {**queue_row(context, where, queue), "made": made}


def find_readable(context: AdminContext, vhost: str, name: str) -> tuple[VHost, Queue]:
    """Return a queue that the actor may read, and its vhost.

    Raises:
        CommandRefused: it does not exist; the error says how to find those that do.
        Refusal: the actor may not read it, or it is exclusive to a connection.
    """
    from harebell.front.operations.get import readable_queue

    where = context.vhost(vhost)
    context.check_permission(where, "read", "queue", name)
    find_queue(context, vhost, name)
    return where, readable_queue(context.caller(where), name)


def _ending(context: AdminContext, vhost: VHost, name: str) -> Caller:
    """Return the caller of a purge or a deletion.

    Exclusive queues are refused over HTTP, and the operator reaches them, as with rabbitmqctl.
    """
    caller = context.caller(vhost)
    queue = vhost.queues.get(name)
    if context.actor is None and queue is not None:
        caller.owner = queue.owner
    return caller


def _purged(outcome: Mapping[str, Any]) -> str:
    count = plural(outcome["messages"], "message")
    return f"queue '{outcome['name']}' in vhost '{outcome['vhost']}' was purged of {count}"


@QUEUES.command("DELETE /api/queues/{vhost}/{name}/contents", tag=MANAGEMENT, done=_purged)
def purge(
    context: AdminContext,
    name: str,
    vhost: InVhost = "/",
    generation: Annotated[str, Argument("Only the queue that a finding tells of.", "ID")] = "",
) -> Row:
    """Drop all messages of a queue that are ready, or wait to be tried again.

    A queue that was deleted and declared again has another generation, and is refused with one.
    """
    from harebell.front.operations.purge import purge_queue

    where = context.vhost(vhost)
    context.check_permission(where, "read", "queue", name)
    _, found = find_queue(context, vhost, name)
    if generation and found.identity != generation:
        raise CommandRefused(
            f"queue '{name}' in vhost '{where.name}' was deleted and declared again since: its "
            f"generation is {found.identity}, and not {generation}"
        )
    count = purge_queue(_ending(context, where, name), name).count
    context.log("info", f"queue '{name}' in vhost '{where.name}' was purged")
    return {"vhost": where.name, "name": name, "messages": count}


def _retried(outcome: Mapping[str, Any]) -> str:
    count = plural(outcome["messages"], "message")
    return f"queue '{outcome['name']}' in vhost '{outcome['vhost']}' delivers {count} again now"


@QUEUES.command(tag=MANAGEMENT, done=_retried)
def retry_now(context: AdminContext, name: str, vhost: InVhost = "/") -> Row:
    """Deliver again now what waits to be tried again."""
    where, queue = find_readable(context, vhost, name)
    count = queue.retry_now()
    context.log("info", f"what waited in queue '{name}' in vhost '{where.name}' is ready")
    return {"vhost": where.name, "name": name, "messages": count}


def _deleted(outcome: Mapping[str, Any]) -> str:
    count = plural(outcome["messages"], "message")
    return f"queue '{outcome['name']}' in vhost '{outcome['vhost']}' was deleted with {count}"


@QUEUES.command("DELETE /api/queues/{vhost}/{name}", tag=MANAGEMENT, done=_deleted)
def delete(
    context: AdminContext,
    name: str,
    vhost: InVhost = "/",
    if_empty: Annotated[bool, Argument("Only if it has no messages.")] = False,
    if_unused: Annotated[bool, Argument("Only if it has no consumer.")] = False,
) -> Slices[Row]:
    """Delete a queue with all its messages."""
    from harebell.front.operations.delete import deletable_queue, queue_deletion

    where = context.vhost(vhost)
    caller = _ending(context, where, name)
    conditions = {"if_unused": if_unused, "if_empty": if_empty}
    queue = deletable_queue(caller, name, **conditions)
    if queue is None:
        raise missing_queue(where, name)
    counts: list[int] = []
    yield from steps(queue_deletion(caller, name, queue, counts.append, **conditions))
    context.log("info", f"queue '{name}' in vhost '{where.name}' was deleted")
    return {"vhost": where.name, "name": name, "messages": sum(counts)}


@QUEUES.over_http("POST /api/queues/{vhost}/{name}/actions", tag=MANAGEMENT)
def queue_action(context: AdminContext, vhost: str, name: str, action: str) -> Row:
    """Synchronise mirrors of a queue: there is one broker, so nothing has to be done."""
    find_queue(context, vhost, name)
    if action not in _ACTIONS:
        raise CommandRefused(f"the action '{action}' is unknown: it is one of {_ACTIONS}")
    return {}


# --- counters -------------------------------------------------------------------------------------


_COUNTED = (
    *("vhost", "name", "messages_ready", "messages_unacknowledged", "consumers", "message_bytes"),
    *("oldest_seconds", "publish", "deliver_get", "redeliver", "ack"),
)
"""The counters of a queue since the start, and its messages now."""


def _counters_row(queue: Queue, now_ms: int) -> Row:
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


@QUEUES.command(tag=MANAGEMENT, row=_COUNTED)
def counters(
    context: AdminContext,
    vhost: OnlyVhost = None,
) -> Slices[list[Row]]:
    """Show the counters of all queues since the start, from which rates are made."""
    now_ms = context.broker.clock.ms
    return gathered(
        _counters_row(queue, now_ms)
        for each in context.vhosts(vhost)
        for _, queue in sorted(each.queues.items())
        if not queue.deleted
    )
