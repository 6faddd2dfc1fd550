"""Commands for the queries that report to the broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypedDict

from harebell.admin.arguments import InVhost, OnlyVhost
from harebell.admin.catalog import QUERIES
from harebell.admin.command import MANAGEMENT, Row
from harebell.admin.context import AdminContext, missing
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.model.query_reports import Report
    from harebell.model.vhost import VHost


class QueryRow(TypedDict):
    """The last report of a query; None for members that it has not reported."""

    vhost: str
    user: str
    name: str
    state: str
    stale: bool
    batch: int | None
    input_rows: int | None
    rows_per_second: float | None
    lag_messages: int | None
    lag_seconds: float | None
    sources: list[str]
    sink: str | None
    error: str | None
    application: str | None
    id: str | None
    run_id: str | None
    interval: int
    reported_at: int


def _row(vhost: VHost, report: Report) -> QueryRow:
    facts = report.facts
    return {
        "vhost": vhost.name,
        "user": report.user,
        "name": report.name,
        "state": report.state,
        "stale": vhost.query_reports.is_stale(report),
        "batch": facts.get("batch"),
        "input_rows": facts.get("input_rows"),
        "rows_per_second": facts.get("rows_per_second"),
        "lag_messages": facts.get("lag_messages"),
        "lag_seconds": facts.get("lag_seconds"),
        "sources": facts.get("sources", []),
        "sink": facts.get("sink"),
        "error": facts.get("error"),
        "application": facts.get("application"),
        "id": facts.get("id"),
        "run_id": facts.get("run_id"),
        "interval": report.interval,
        "reported_at": report.time,
    }


@QUERIES.listing(
    "queries that report to the broker",
    "GET /api/queries",
    "GET /api/queries/{vhost}: List the queries in a vhost that report to the broker.",
    tag=MANAGEMENT,
    row=QueryRow,
    shown=(
        *("vhost", "user", "name", "state", "stale", "batch", "rows_per_second"),
        *("lag_messages", "error"),
    ),
)
def list_queries(
    context: AdminContext,
    vhost: OnlyVhost = None,
) -> Slices[list[QueryRow]]:
    """List queries by vhost, name and user."""
    return gathered(_rows(context.vhosts(vhost)))


def _rows(vhosts: list[VHost]) -> Iterator[QueryRow]:
    for vhost in vhosts:
        for report in vhost.query_reports.all():
            yield _row(vhost, report)


@QUERIES.command(
    "DELETE /api/queries/{vhost}/{user}/{name}",
    tag=MANAGEMENT,
    done="the report of query '{name}' of user '{user}' in vhost '{vhost}' was deleted",
)
def delete(
    context: AdminContext,
    name: str,
    user: str,
    vhost: InVhost = "/",
) -> Row:
    """Delete the report of a query; a query that still runs reports again."""
    where = context.vhost(vhost)
    context.check_work_of(user, f"the report of query '{name}'", "delete")
    if not where.query_reports.delete(user, name):
        raise missing(
            f"user '{user}' has no report of a query '{name}' in vhost '{where.name}': "
            "`harebell queries list` shows all"
        )
    return {"vhost": where.name, "user": user, "name": name}
