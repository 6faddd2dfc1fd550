"""Commands for the queries that report to the broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.admin.arguments import InVhost, OnlyVhost
from harebell.admin.catalog import QUERIES
from harebell.admin.command import MANAGEMENT, Row
from harebell.admin.context import AdminContext, missing
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.model.query_reports import Report
    from harebell.model.vhost import VHost


_REPORTED = (
    *("batch", "input_rows", "rows_per_second", "lag_messages", "lag_seconds", "sources", "sink"),
    *("error", "application", "id", "run_id"),
)
"""Members that are as the query has reported them; None for those that it has not reported."""
_COLUMNS = ("vhost", "user", "name", "state", "stale", *_REPORTED, "interval", "reported_at")


def _row(vhost: VHost, report: Report) -> Row:
    return {
        "vhost": vhost.name,
        "user": report.user,
        "name": report.name,
        "state": report.state,
        "stale": vhost.query_reports.is_stale(report),
        **{name: report.facts.get(name) for name in _REPORTED},
        "sources": report.facts.get("sources", []),
        "interval": report.interval,
        "reported_at": report.time,
    }


@QUERIES.listing(
    "queries that report to the broker",
    "GET /api/queries",
    "GET /api/queries/{vhost}: List the queries in a vhost that report to the broker.",
    tag=MANAGEMENT,
    row=_COLUMNS,
    shown=(
        *("vhost", "user", "name", "state", "stale", "batch", "rows_per_second"),
        *("lag_messages", "error"),
    ),
)
def list_queries(
    context: AdminContext,
    vhost: OnlyVhost = None,
) -> Slices[list[Row]]:
    """List queries by vhost, name and user."""
    return gathered(
        _row(each, report) for each in context.vhosts(vhost) for report in each.query_reports.all()
    )


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
