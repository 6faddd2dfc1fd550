"""Commands for the audit trail of a running broker."""

from __future__ import annotations

import re
from collections import deque
from typing import Annotated, Any, TypedDict

from harebell.admin.catalog import AUDIT
from harebell.admin.command import ADMINISTRATOR, Argument, Row
from harebell.admin.context import AdminContext, WrongArgument, missing
from harebell.admin.limits import AUDIT_BLOCK_UNITS, AUDIT_ROWS
from harebell.admin.place import NEWEST
from harebell.base.slices import Slices

_SPAN = re.compile(r"(\d{1,6})([smhd])")
_SPANS = {"s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_TIME_HELP = "a time such as 2026-01-31 or 2026-01-31T14:00:00Z, or so long ago: 15m, 2h, 7d"
_END = 2**62
_RESULTS = ("done", "refused", "failed")

Time = Annotated[str, Argument("", "TIME")]


class AuditLine(TypedDict):
    """A line of the audit trail."""

    number: int
    time: str
    user: str
    peer: str
    door: str
    act: str
    vhost: str
    object: str
    result: str
    reason: str
    arguments: dict[str, Any]
    before: Any
    after: Any


@AUDIT.listing(
    "acts",
    "GET /api/audit",
    tag=ADMINISTRATOR,
    row=AuditLine,
    shown=("time", "user", "peer", "door", "act", "vhost", "object", "result"),
    summary="List who has changed what, the last acts at the end.",
    merge=NEWEST,
)
def list_acts(
    context: AdminContext,
    user: Annotated[str, Argument("Only acts of this user.", "NAME")] = "",
    object: Annotated[str, Argument("Only acts on objects with this text.", "TEXT")] = "",  # noqa: A002
    act: Annotated[str, Argument("Only this act, such as queues.delete, or noun.", "ACT")] = "",
    of_vhost: Annotated[str, Argument("Only acts in this vhost.", "NAME")] = "",
    result: Annotated[str, Argument("Only acts with this result.", choices=("", *_RESULTS))] = "",
    text: Annotated[str, Argument("Only lines that have this text.", "TEXT")] = "",
    since: Annotated[str, Argument("Only acts since 2026-01-31, or 2h ago.", "TIME")] = "",
    until: Annotated[str, Argument("Only acts until 2026-01-31, or 2h ago.", "TIME")] = "",
    limit: Annotated[int, Argument("Most acts: the last ones.", "NUMBER")] = 100,
    before: Annotated[int, Argument("Only acts before the one with this number.", "NUMBER")] = 0,
) -> Slices[list[Row]]:
    """List acts from the audit trail."""
    from harebell.admin.audit import number_at

    if context.auditor is None:
        raise missing("this broker has no audit trail")
    if not 1 <= limit <= AUDIT_ROWS:
        raise WrongArgument(f"the limit is {limit}: give a number from 1 to {AUDIT_ROWS}")
    now = context.broker.clock.ms
    first = number_at(_time_of("since", since, now)) if since else 0
    end = min(before or _END, number_at(_time_of("until", until, now)) if until else _END)
    equal = {"user": user, "vhost": of_vhost, "result": result}
    wanted = {name: value for name, value in equal.items() if value}
    part = object.lower()
    rows: deque[Row] = deque()
    searcher = "" if context.actor is None else context.actor.name
    with context.auditor().search(searcher, end, text.lower().encode("utf-8", "replace")) as lines:
        for line in lines:
            if line is None:
                context.broker.work.charge(AUDIT_BLOCK_UNITS)
                yield
                continue
            if line["number"] < first:
                break
            if (
                all(line.get(name) == value for name, value in wanted.items())
                and part in str(line.get("object")).lower()
                and (not act or f"{line.get('act')}.".startswith(f"{act}."))
            ):
                rows.appendleft({name: line.get(name) for name in AuditLine.__annotations__})
                if len(rows) == limit:
                    break
    return list(rows)


def _time_of(name: str, given: str, now: int) -> int:
    """Return a time in milliseconds since 1970.

    Raises:
        WrongArgument: it is none.
    """
    from harebell.model.filter.comparison import time_of

    span = _SPAN.fullmatch(given)
    if span is not None:
        return max(0, now - int(span[1]) * _SPANS[span[2]])
    moment = time_of(given)
    if moment is None:
        raise WrongArgument(f"{name} is '{given[:40]}': give {_TIME_HELP}")
    return max(0, int(moment.timestamp() * 1_000))
