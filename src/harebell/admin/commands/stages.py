"""Commands for staged batches: published in part and not committed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from harebell.admin.arguments import OnlyVhost
from harebell.admin.catalog import STAGES
from harebell.admin.command import MANAGEMENT, POLICYMAKER, Argument, Row, plural
from harebell.admin.context import AdminContext, CommandRefused
from harebell.admin.rows.common import Columns, row_of

_MS = 1000
_COLUMNS: Columns = {
    "vhost": lambda _stages, staged: staged.key.vhost,
    "user": lambda _stages, staged: staged.key.user,
    "publisher": lambda _stages, staged: staged.key.name,
    "batch": lambda _stages, staged: staged.number,
    "rows": lambda _stages, staged: staged.rows,
    "octets": lambda _stages, staged: staged.byte_count,
    "idle_seconds": lambda stages, staged: stages.idle_ms(staged) // _MS,
    "connections": lambda stages, staged: stages.connections(staged.key),
    "attempts": lambda _stages, staged: len(staged.pieces),
    "committing": lambda _stages, staged: staged.committing,
}


@STAGES.listing(
    "staged batches",
    tag=MANAGEMENT,
    row=_COLUMNS,
    shown=(
        *("vhost", "user", "publisher", "batch", "rows", "octets", "idle_seconds"),
        "connections",
    ),
)
def list_stages(
    context: AdminContext,
    vhost: OnlyVhost = None,
) -> list[Row]:
    """List batches by vhost, user, publisher and number."""
    only = None if vhost is None else context.vhost(vhost).name
    stages = context.broker.stages
    return [
        row_of(_COLUMNS, stages, each) for each in stages.all() if only in (None, each.key.vhost)
    ]


def _dropped(outcome: Mapping[str, Any]) -> str:
    shown = f"{plural(outcome['batches'], 'batch')}, {plural(outcome['rows'], 'row')}"
    return f"what publisher '{outcome['publisher']}' had staged was dropped: {shown}"


@STAGES.command(tag=POLICYMAKER, done=_dropped)
def drop(
    context: AdminContext,
    publisher: str,
    vhost: Annotated[str, Argument("The vhost.", "NAME")] = "/",
    user: Annotated[
        str | None, Argument("Whose publisher, where several users have one.", "NAME")
    ] = None,
    batch: Annotated[int | None, Argument("Only this batch; else all.", "NUMBER")] = None,
) -> Row:
    """Forget what a publisher has staged: it cannot be committed any more."""
    where, stages = context.vhost(vhost).name, context.broker.stages
    dropped = [
        each
        for each in stages.all()
        if (each.key.vhost, each.key.name) == (where, publisher)
        and user in (None, each.key.user)
        and batch in (None, each.number)
    ]
    if not dropped:
        which = "no batch" if batch is None else f"no batch {batch}"
        raise CommandRefused(
            f"{which} of publisher '{publisher}' is staged in vhost '{where}': "
            "`harebell stages list` shows all"
        )
    users = sorted({each.key.user for each in dropped})
    if len(users) > 1:
        raise CommandRefused(
            f"the users {', '.join(users)} have a publisher '{publisher}' each: say whose "
            "with --user"
        )
    rows = sum(stages.drop(each.key, each.number) for each in dropped)
    context.log(
        "warning",
        f"{len(dropped)} staged batches of publisher '{publisher}' were dropped: {rows} rows",
    )
    return {"vhost": where, "user": users[0], "batches": len(dropped), "rows": rows}
