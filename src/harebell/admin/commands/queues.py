"""Commands for queues. The columns have the names of rabbitmqctl."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

from harebell.admin.catalog import QUEUES
from harebell.admin.command import MANAGEMENT, Argument, Form, Row, plural
from harebell.admin.context import AdminContext, CommandRefused, checked_name
from harebell.base.limits import NAME_BYTES
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.vhost import VHost

InVhost = Annotated[str, Argument("The vhost it is in.", "NAME")]
Table = Annotated[
    dict[str, Any],
    Argument("An argument: name=text or name:=JSON. May be repeated.", form=Form.TABLE),
]
NO_ARGUMENTS: dict[str, Any] = {}


class QueueRow(TypedDict):
    """What there is to say about a queue."""

    vhost: str
    name: str
    type: str
    durable: bool
    auto_delete: bool
    exclusive: bool
    owner: str
    arguments: dict[str, Any]
    policy: str
    operator_policy: str
    effective_policy_definition: dict[str, Any]
    messages_ready: int
    messages_unacknowledged: int
    messages_delayed: int
    messages_leased: int
    messages: int
    consumers: int
    durability: str
    state: str


def queue_row(vhost: VHost, queue: Queue) -> QueueRow:
    """What there is to say about a queue."""
    from harebell.model.queue.arguments import queue_type

    policies = vhost.policies
    ready = queue.ready_count()
    delayed = queue.delayed_count()
    owner: Any = queue.owner
    return {
        "vhost": vhost.name,
        "name": queue.name,
        "type": queue_type(queue.arguments),
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "exclusive": owner is not None,
        "owner": "" if owner is None else owner.peer.connection_name,
        "arguments": dict(queue.arguments),
        "policy": _policy_name(policies.policy_of(queue)),
        "operator_policy": _policy_name(policies.policy_of(queue, operator=True)),
        "effective_policy_definition": policies.effective(queue),
        "messages_ready": ready,
        "messages_unacknowledged": queue.unacked,
        "messages_delayed": delayed,
        "messages_leased": queue.leased,
        "messages": ready + queue.unacked + delayed + queue.leased,
        "consumers": len(queue.consumers),
        "durability": str(policies.durability_of(queue)) if queue.durable else "",
        "state": "running",
    }


def _policy_name(policy: Any) -> str:
    return "" if policy is None else str(policy.name)


def _find(context: AdminContext, vhost: str, name: str) -> tuple[VHost, Queue]:
    where = context.vhost(vhost)
    queue = where.queues.get(name)
    if queue is None:
        raise CommandRefused(
            f"no queue '{name}' in vhost '{where.name}': `harebell queues list` shows all"
        )
    return where, queue


@QUEUES.listing(
    "queues",
    "GET /api/queues",
    "GET /api/queues/{vhost}",
    tag=MANAGEMENT,
    row=QueueRow,
    shown=("vhost", "name", "type", "messages", "consumers", "durability", "policy"),
)
def list_queues(
    context: AdminContext,
    vhost: Annotated[str | None, Argument("Only those of this vhost.", "NAME")] = None,
) -> Slices[list[QueueRow]]:
    """List queues by vhost and name."""
    return gathered(
        queue_row(each, queue)
        for each in context.vhosts(vhost)
        for _, queue in sorted(each.queues.items())
        if not queue.deleted
    )


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
    durable: Annotated[
        bool,
        Argument("Whether it survives a restart.  [default: durable]", off="transient"),
    ] = True,
    auto_delete: Annotated[bool, Argument("It goes with its last consumer.")] = False,
    arguments: Table = NO_ARGUMENTS,
) -> Row:
    """Make a queue, or see that there is one like that."""
    from harebell.model.queue.arguments import QUEUE_TYPE

    where = context.vhost(vhost)
    checked_name(name, "queue", NAME_BYTES)
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
    return {**queue_row(where, queue), "made": made}


def _purged(known: Mapping[str, Any]) -> str:
    count = plural(known["messages"], "message")
    return f"queue '{known['name']}' in vhost '{known['vhost']}' was purged of {count}"


@QUEUES.command("DELETE /api/queues/{vhost}/{name}/contents", tag=MANAGEMENT, done=_purged)
def purge(context: AdminContext, name: str, vhost: InVhost = "/") -> Row:
    """Drop all messages of a queue that are ready, or wait to be tried again."""
    where, queue = _find(context, vhost, name)
    count = queue.purge()
    queue.sync_soon()
    context.log("info", f"queue '{queue.name}' in vhost '{where.name}' was purged")
    return {"vhost": where.name, "name": queue.name, "messages": count}


def _retried(known: Mapping[str, Any]) -> str:
    count = plural(known["messages"], "message")
    return f"queue '{known['name']}' in vhost '{known['vhost']}' delivers {count} again now"


@QUEUES.command(tag=MANAGEMENT, done=_retried)
def retry(context: AdminContext, name: str, vhost: InVhost = "/") -> Row:
    """Deliver again now what waits to be tried again."""
    where, queue = _find(context, vhost, name)
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
    if_unused: Annotated[bool, Argument("Only if nobody consumes it.")] = False,
) -> Row:
    """Delete a queue with all its messages."""
    where, queue = _find(context, vhost, name)
    owner: Any = queue.owner
    count = where.delete_queue(queue.name, owner, if_unused=if_unused, if_empty=if_empty)
    context.log("info", f"queue '{queue.name}' in vhost '{where.name}' was deleted")
    return {"vhost": where.name, "name": queue.name, "messages": count}
