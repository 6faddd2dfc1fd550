"""Commands for queues: `harebell queues`. The columns have the names of rabbitmqctl."""

from __future__ import annotations

from typing import Any

from harebell.admin.context import AdminContext, Command, Fields, Refused, checked_name
from harebell.base.limits import NAME_BYTES
from harebell.base.slices import Slices, gathered
from harebell.model.queue.arguments import QUEUE_TYPE, queue_type
from harebell.model.queue.contract import Queue
from harebell.model.vhost import VHost


class Filter(Fields):
    """Queues of one vhost, or of all."""

    vhost: str | None = None


class Named(Fields):
    """Which queue, and where."""

    name: str
    vhost: str


class Declared(Named, kw_only=True):
    """A queue, and what it shall be like."""

    durable: bool = True
    auto_delete: bool = False
    type: str | None = None
    arguments: dict[str, Any] = {}


class Deleted(Named, kw_only=True):
    """A queue, and when not to delete it."""

    if_empty: bool = False
    if_unused: bool = False


def _policy_name(policy: Any) -> str:
    return "" if policy is None else str(policy.name)


def facts(vhost: VHost, queue: Queue) -> dict[str, Any]:
    """What there is to say about a queue."""
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


def list_queues(context: AdminContext, asked: Filter) -> Slices[list[dict[str, Any]]]:
    """Queues by vhost and name."""
    vhosts = context.broker.vhosts
    wanted = sorted(vhosts) if asked.vhost is None else [context.vhost(asked.vhost).name]
    return gathered(
        facts(vhost, queue)
        for vhost in [vhosts[name] for name in wanted]
        for _, queue in sorted(vhost.queues.items())
        if not queue.deleted
    )


def _found(context: AdminContext, asked: Named) -> tuple[VHost, Queue]:
    vhost = context.vhost(asked.vhost)
    queue = vhost.queues.get(asked.name)
    if queue is None:
        raise Refused(
            f"no queue '{asked.name}' in vhost '{vhost.name}': `harebell queues list` shows all"
        )
    return vhost, queue


def declare(context: AdminContext, asked: Declared) -> dict[str, Any]:
    """A queue, unless it is there and like that already."""
    vhost = context.vhost(asked.vhost)
    name = checked_name(asked.name, "queue", NAME_BYTES)
    made = name not in vhost.queues
    if made:
        vhost.check_room(name)
    arguments = dict(asked.arguments)
    if asked.type is not None:
        arguments[QUEUE_TYPE] = asked.type
    queue = vhost.declare_queue(
        name, durable=asked.durable, auto_delete=asked.auto_delete, arguments=arguments
    )
    queue.declared()
    if made:
        context.log("info", f"queue '{name}' in vhost '{vhost.name}' was declared")
    return facts(vhost, queue) | {"made": made}


def purge(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Drop the messages that are ready; deliveries that are out stay out."""
    vhost, queue = _found(context, asked)
    count = queue.purge()
    queue.sync_soon()
    context.log("info", f"queue '{queue.name}' in vhost '{vhost.name}' was purged")
    return {"vhost": vhost.name, "name": queue.name, "messages": count}


def retry(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Deliver again now what waits for that."""
    vhost, queue = _found(context, asked)
    count = queue.retry_now()
    context.log("info", f"waiting in queue '{queue.name}' in vhost '{vhost.name}' was ended")
    return {"vhost": vhost.name, "name": queue.name, "messages": count}


def delete(context: AdminContext, asked: Deleted) -> dict[str, Any]:
    """Away with a queue and its messages; whoever consumes it is told."""
    vhost, queue = _found(context, asked)
    owner: Any = queue.owner
    count = vhost.delete_queue(
        queue.name, owner, if_unused=asked.if_unused, if_empty=asked.if_empty
    )
    context.log("info", f"queue '{queue.name}' in vhost '{vhost.name}' was deleted")
    return {"vhost": vhost.name, "name": queue.name, "messages": count}


COMMANDS = {
    "queues.list": Command(Filter, list_queues),
    "queues.declare": Command(Declared, declare),
    "queues.purge": Command(Named, purge),
    "queues.retry": Command(Named, retry),
    "queues.delete": Command(Deleted, delete),
}
