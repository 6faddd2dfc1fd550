"""Commands for leases: the groups that claim messages of queues."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import OnlyVhost
from harebell.admin.catalog import LEASES
from harebell.admin.command import MANAGEMENT, POLICYMAKER, Argument, Row, plural
from harebell.admin.context import AdminContext, CommandRefused, missing
from harebell.admin.rows.common import Columns, row_of
from harebell.base.errors import Refusal

if TYPE_CHECKING:
    from harebell.model.lease.group import Group
    from harebell.model.vhost import VHost


_COLUMNS: Columns = {
    "vhost": lambda group: group.vhost.name,
    "queue": lambda group: group.queue.name,
    "group": lambda group: group.name,
    "epoch": lambda group: group.epoch,
    "claims": lambda group: len(group.claims),
    "messages": lambda group: group.messages,
    "committed": lambda group: group.committed,
    "lost": lambda group: group.lost,
    "last": lambda group: group.last,
    "timeout": lambda group: group.timeout / 1000,
    "holder": lambda group: "" if group.holder is None else group.holder.peer.connection_name,
}


@LEASES.listing(
    "lease groups",
    "GET /api/leases",
    "GET /api/leases/{vhost}",
    tag=MANAGEMENT,
    row=_COLUMNS,
    shown=("vhost", "queue", "group", "epoch", "claims", "messages", "committed", "lost"),
)
def list_leases(
    context: AdminContext,
    vhost: OnlyVhost = None,
    queue: Annotated[str | None, Argument("Only those of this queue.", "NAME")] = None,
) -> list[Row]:
    """List groups by vhost, queue and name."""
    where = None if vhost is None else context.vhost(vhost)
    if where is not None and queue is not None:
        # One queue: the others are not looked at.
        leases = getattr(where.queues.get(queue), "leases", None)
        groups = [] if leases is None else list(leases.groups.values())
    else:
        groups = context.broker.leases.of(None if where is None else where.name)
    rows = [
        row_of(_COLUMNS, group)
        for group in groups
        if context.may_see(group.vhost.name) and queue in (None, group.queue.name)
    ]
    return sorted(rows, key=lambda row: (row["vhost"], row["queue"], row["group"]))


@LEASES.command("GET /api/leases/{vhost}/{queue}/{group}", tag=MANAGEMENT)
def show(
    context: AdminContext,
    queue: str,
    group: str,
    vhost: Annotated[str, Argument("The vhost.", "NAME")] = "/",
) -> Row:
    """Show one group with its open claims."""
    lease_group = _group(context, context.vhost(vhost), queue, group)
    claims = [
        {"number": number, "messages": claim.messages}
        for number, claim in sorted(lease_group.claims.items())
    ]
    return {
        **row_of(_COLUMNS, lease_group),
        "generation": lease_group.queue.identity,
        "open": claims,
    }


def _group(context: AdminContext, vhost: VHost, queue: str, name: str) -> Group:
    """Return a group.

    Raises:
        CommandRefused: there is none.
    """
    claimed = vhost.queues.get(queue)
    if claimed is None:
        raise missing(
            f"no queue '{queue}' in vhost '{vhost.name}': `harebell queues list` shows all"
        )
    try:
        return context.broker.leases.find(vhost, claimed, name)
    except Refusal as refusal:
        raise CommandRefused(
            f"{refusal.text}: `harebell leases list` shows all", refusal.kind
        ) from None


def _released(outcome: Mapping[str, Any]) -> str:
    done = "released and forgotten" if outcome["forget"] else "released"
    count = plural(outcome["messages"], "message")
    return f"group '{outcome['group']}' of queue '{outcome['queue']}' was {done}: {count} went back"


@LEASES.command("DELETE /api/leases/{vhost}/{queue}/{group}", tag=POLICYMAKER, done=_released)
def release(
    context: AdminContext,
    queue: str,
    group: str,
    vhost: Annotated[str, Argument("The vhost.", "NAME")] = "/",
    forget: Annotated[bool, Argument("Forget the group itself, too.")] = False,
    claim: Annotated[
        int | None,
        Argument("Only this claim and those after it: a group commits in order.", "NUMBER"),
    ] = None,
) -> Row:
    """Give what a group has claimed back to the queue: its claims count as lost."""
    where = context.vhost(vhost)
    leases = context.broker.leases
    lease_group = _group(context, where, queue, group)
    if claim is not None and forget:
        raise CommandRefused("a group is forgotten with all of its claims: leave the claim out")
    if claim is not None and claim not in lease_group.claims:
        raise missing(
            f"{lease_group} has no open claim {claim}: `harebell leases show` lists those it has"
        )
    if forget:
        count = leases.forget(lease_group)
    else:
        count = sum(each.messages for each in leases.take_back(lease_group, claim or 0))
    lease_group.queue.drain()
    context.log("warning", f"{lease_group} was released by an operator")
    return {"vhost": where.name, "queue": queue, "group": lease_group.name, "messages": count}
