"""Commands for leases: `harebell leases`."""

from __future__ import annotations

from typing import Any

from harebell.admin.context import AdminContext, Command, Fields, Refused
from harebell.base.errors import Refusal
from harebell.model.lease_group import Group


class Filter(Fields):
    """Groups of one vhost, or of all."""

    vhost: str | None = None


class Named(Fields, kw_only=True):
    """Which group, of which queue, where; and whether it is forgotten, too."""

    queue: str
    group: str
    vhost: str
    forget: bool = False


def facts(group: Group) -> dict[str, Any]:
    """What there is to say about a group."""
    holder: Any = group.holder
    return {
        "vhost": group.vhost.name,
        "queue": group.queue.name,
        "group": group.name,
        "epoch": group.epoch,
        "claims": len(group.claims),
        "messages": group.messages,
        "committed": group.committed,
        "last": group.last,
        "lost": group.lost,
        "timeout": group.timeout / 1000,
        "holder": "" if holder is None else str(holder.peer.connection_name),
    }


def list_leases(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """Groups by vhost, queue and name."""
    vhost = None if asked.vhost is None else context.vhost(asked.vhost).name
    found = [facts(group) for group in context.broker.leases.of(vhost)]
    return sorted(found, key=lambda row: (row["vhost"], row["queue"], row["group"]))


def release(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Let the open claims of a group go back to their queue: they count as lost."""
    vhost = context.vhost(asked.vhost)
    queue = vhost.queues.get(asked.queue)
    leases = context.broker.leases
    if queue is None:
        raise Refused(
            f"no queue '{asked.queue}' in vhost '{vhost.name}': `harebell queues list` shows all"
        )
    try:
        group = leases.find(vhost, queue, asked.group)
    except Refusal as refusal:
        raise Refused(f"{refusal.text}: `harebell leases list` shows all") from None
    if asked.forget:
        count = leases.forget(group)
    else:
        count = sum(claim.messages for claim in leases.take_back(group))
    queue.drain()
    context.log("warning", f"{group} was released by an operator")
    return {"vhost": vhost.name, "queue": queue.name, "group": group.name, "messages": count}


COMMANDS = {
    "leases.list": Command(Filter, list_leases),
    "leases.release": Command(Named, release),
}
