"""Commands for the log of a running broker."""

from __future__ import annotations

from typing import Annotated

from harebell.admin.catalog import LOGS
from harebell.admin.command import ADMINISTRATOR, Argument, Row
from harebell.admin.context import AdminContext, CommandRefused
from harebell.admin.limits import LOG_RECENT_LINES
from harebell.admin.log_line import LogLine
from harebell.admin.place import FULLEST, WORKERS

LEVELS = ("debug", "info", "warning", "error")


@LOGS.command(
    verb="reopen",
    tag=ADMINISTRATOR,
    done="the log files are open under their names",
    place=WORKERS,
    merge=FULLEST,
)
def reopen(context: AdminContext) -> Row:
    """Close the log files and open them by their names, after they were renamed."""
    context.operation.reopen_logs()
    return {}


@LOGS.command(
    "GET /api/logs",
    tag=ADMINISTRATOR,
    row=LogLine,
    shown=("time", "level", "pid", "text"),
)
def tail(
    context: AdminContext,
    level: Annotated[
        str, Argument("Only lines of this level, or more important ones.", choices=LEVELS)
    ] = "debug",
    limit: Annotated[int, Argument("Most lines: the last ones.", "NUMBER")] = 100,
    after: Annotated[int, Argument("Only lines after the one with this number.", "NUMBER")] = 0,
) -> list[LogLine]:
    """Show the last lines of the log, which the broker keeps in memory."""
    if not 1 <= limit <= LOG_RECENT_LINES:
        raise CommandRefused(f"the limit is {limit}: give a number from 1 to {LOG_RECENT_LINES}")
    minimum = LEVELS.index(level)
    return context.recent_lines(after, limit, lambda each: LEVELS.index(each) >= minimum)
