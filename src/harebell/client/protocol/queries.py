"""The verb of queries that report how far they are; see docs/protocols/extensions.md.

It is Harebell's own; with a broker that lacks it, it raises `ExtensionMissing`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.client.protocol.call import Call
from harebell.client.protocol.verbs import Verbs
from harebell.wire.v09 import methods
from harebell.wire.v09 import query as wire


def report_query(channel: Verbs, query: str, facts: Mapping[str, Any]) -> Call[None]:
    """Report how far a query is; the report replaces the last one of the user about the query.

    Args:
        channel: any channel.
        query: the name of the query.
        facts: such as `batch`, `rows_per_second`, `lag_messages` and `error`.

    Raises:
        PreconditionFailed: a fact is unknown or invalid, or too many queries report.
        ExtensionMissing: the broker takes no reports.
    """
    channel.need(wire.NAME)
    report = methods.QueryReport(query, dict(facts))
    return channel.call(report, (methods.QueryReportOk,), _none)


def _none(_reply: methods.QueryReportOk) -> None:
    return None
