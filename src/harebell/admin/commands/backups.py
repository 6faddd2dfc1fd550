"""Commands for backups of a running broker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from harebell.admin.catalog import BACKUPS
from harebell.admin.command import ADMINISTRATOR, Argument, Row
from harebell.admin.context import AdminContext, CommandRefused, WrongArgument
from harebell.admin.limits import BACKUP_KEEP_MAX, BACKUP_RATE_BYTES, BACKUP_RATE_MAX_BYTES
from harebell.base.errors import StoreError

Target = Annotated[
    str, Argument("A directory of the broker's machine, or s3://bucket/backups.", "TARGET")
]
Keep = Annotated[int, Argument("How many backups to keep in the target; 0 for all.", "COUNT")]
Rate = Annotated[int, Argument("Most bytes per second that are copied; 0 for no limit.", "BYTES")]


@contextmanager
def _refusals() -> Iterator[None]:
    try:
        yield
    except StoreError as error:
        raise CommandRefused(str(error)) from None


@BACKUPS.over_http("POST /api/backups", tag=ADMINISTRATOR, status=200)
def start(
    context: AdminContext, target: Target, keep: Keep = 0, rate: Rate = BACKUP_RATE_BYTES
) -> Row:
    """Start a backup; its state is among the backups from then on."""
    _check("keep", keep, BACKUP_KEEP_MAX)
    _check("rate", rate, BACKUP_RATE_MAX_BYTES)
    with _refusals():
        row = context.backups.start(target, keep, rate)
    context.log("info", f"a backup to {row['target']} begins")
    return row


def _check(name: str, value: int, limit: int) -> None:
    if not 0 <= value <= limit:
        raise WrongArgument(f"{name} is a number from 0 to {limit}")


_COLUMNS = (
    *("id", "name", "target", "state", "problem", "commit", "files", "bytes"),
    *("copied_files", "copied_bytes", "began", "ended"),
)


@BACKUPS.listing(
    "backups",
    "GET /api/backups",
    tag=ADMINISTRATOR,
    row=_COLUMNS,
    shown=("name", "target", "state", "files", "bytes", "copied_bytes", "began", "problem"),
)
def list_backups(context: AdminContext) -> list[Row]:
    """List the backups since the start of the broker, with the one that is being made."""
    return context.backups.rows()


@BACKUPS.command("DELETE /api/backups", tag=ADMINISTRATOR, done="the backup ends")
def cancel(context: AdminContext) -> Row:
    """End the backup that is being made; nothing of it stays."""
    with _refusals():
        context.backups.cancel()
    return {}
