"""A query of a data program has failed, does not report any more, or is behind."""

from __future__ import annotations

from collections.abc import Iterator

from harebell.admin.findings import QUERY
from harebell.config import Config
from harebell.management.health.rule import IsOn, NodeRule, Seen, command, eased, span
from harebell.management.health.trails import NodeTrail
from harebell.model.query_reports import Report

_MS = 1_000
_FAILED = "failed"
_SHOWN_CHARACTERS = 200


def _look(node: NodeTrail, config: Config, is_on: IsOn) -> Iterator[Seen | None]:
    limit = config.health_query_lag_seconds
    for vhost in list(node.source.broker.vhosts.values()):
        for report in vhost.query_reports.all():
            why = _why(
                report,
                stale=vhost.query_reports.is_stale(report),
                limit=eased(limit, is_on(vhost.name, report.name)) if limit else float("inf"),
                silent=(node.now - report.time) / _MS,
            )
            if why:
                advice = "Look at the log of the program, and start it again."
                shown = command("queries", "list")
                since = 0 if why.startswith("it is") else report.time
                yield Seen(why, advice, shown, since, report.name, vhost.name)
        yield None


def _why(report: Report, *, stale: bool, limit: float, silent: float) -> str:
    """Return what is wrong with a query; "" for nothing."""
    if report.state == _FAILED:
        error = str(report.facts.get("error", "")).partition("\n")[0][:_SHOWN_CHARACTERS]
        return f"it has failed: {error}" if error else "it has failed"
    if stale:
        return f"has not reported for {span(silent)}, and does so every {report.interval} seconds"
    lag = report.facts.get("lag_seconds", 0)
    if report.state == "running" and lag >= limit:
        return f"it is {span(lag)} behind its sources"
    return ""


RULE = NodeRule("query", QUERY, _look, passes=1)
