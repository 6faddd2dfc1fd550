"""Commands for staged batches: `harebell stages`."""

from __future__ import annotations

from typing import Any

from harebell.admin.context import AdminContext, Command, Fields, Refused
from harebell.model.publishers import STAGED, Key
from harebell.model.stages import StagedBatch

_MS = 1000


class Filter(Fields):
    """Batches of one vhost, or of all."""

    vhost: str | None = None


class Named(Fields, kw_only=True):
    """Which publisher, whose and where; and which of its batches, or all."""

    publisher: str
    user: str | None = None
    vhost: str
    batch: int | None = None


def facts(context: AdminContext, staged: StagedBatch) -> dict[str, Any]:
    """What there is to say about a batch."""
    stages, key = context.broker.stages, staged.key
    return {
        "vhost": key.vhost,
        "user": key.user,
        "publisher": key.name,
        "batch": staged.number,
        "attempts": len(staged.pieces),
        "rows": staged.rows,
        "octets": staged.octets,
        "idle_seconds": stages.idle_ms(staged) // _MS,
        "connections": stages.connections(key),
        "committing": staged.committing,
    }


def list_stages(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """Batches by vhost, user, publisher and number."""
    vhost = None if asked.vhost is None else context.vhost(asked.vhost).name
    found = [each for each in context.broker.stages.all() if vhost in (None, each.key.vhost)]
    return [facts(context, each) for each in found]


def drop(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Forget what a publisher has staged: its commit will be refused."""
    vhost, stages = context.vhost(asked.vhost).name, context.broker.stages
    found = [
        each
        for each in stages.all()
        if (each.key.vhost, each.key.name) == (vhost, asked.publisher)
        and asked.user in (None, each.key.user)
        and asked.batch in (None, each.number)
    ]
    if not found:
        which = "no batch" if asked.batch is None else f"no batch {asked.batch}"
        raise Refused(
            f"{which} of publisher '{asked.publisher}' is staged in vhost '{vhost}': "
            "`harebell stages list` shows all"
        )
    users = sorted({each.key.user for each in found})
    if len(users) > 1:
        raise Refused(
            f"the users {', '.join(users)} have a publisher '{asked.publisher}' each: say whose "
            "with --user"
        )
    rows = sum(stages.drop(each.key, each.number) for each in found)
    key = Key(STAGED, vhost, users[0], asked.publisher)
    context.log(
        "warning",
        f"{len(found)} staged batches of publisher '{key.name}' were dropped: {rows} rows",
    )
    return {"vhost": vhost, "user": key.user, "batches": len(found), "rows": rows}


COMMANDS = {
    "stages.list": Command(Filter, list_stages),
    "stages.drop": Command(Named, drop),
}
