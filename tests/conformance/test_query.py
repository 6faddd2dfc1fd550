"""The class query: what queries report, and what is refused.

It is one of Harebell's own, so no rule of a specification says anything about it.
"""

from __future__ import annotations

from collections.abc import Callable

from harebell.auth.permissions import Permissions
from harebell.wire.v09 import methods
from tests.conformance.raw import Peer
from tests.conformance.sites import MemorySite

Connect = Callable[[], Peer]


def test_a_report_is_kept_in_the_vhost_for_its_user(
    connect_memory: Connect, memory: MemorySite
) -> None:
    memory.users.get("guest").permissions["/"] = Permissions("", "", "^a$")
    peer = connect_memory().open()
    facts = {"batch": 3, "lag_messages": 2**40, "rows_per_second": 1.5, "sources": ["a", "ü"]}
    peer.send(methods.QueryReport("sales", facts))
    peer.expect(methods.QueryReportOk)
    (report,) = memory.broker.vhosts["/"].query_reports.all()
    assert (report.user, report.name, report.state) == ("guest", "sales", "running")
    assert report.facts == facts


def test_a_wrong_report_closes_the_channel_with_the_name_of_the_fact(
    connect_memory: Connect, memory: MemorySite
) -> None:
    peer = connect_memory().open()
    peer.send(methods.QueryReport("sales", {"batch": "three"}))
    text = (
        "PRECONDITION_FAILED - the fact 'batch' in the report of query 'sales' has to be a number "
        "from 0 on"
    )
    peer.expect_channel_close(406, text, "query.report")
    assert memory.broker.vhosts["/"].query_reports.all() == []
