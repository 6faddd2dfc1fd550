"""The class query, Harebell's own: queries report how far they are.

docs/protocols/extensions.md explains it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from harebell.auth.permissions import ACTIONS
from harebell.front.common.permission import check_some
from harebell.wire.v09 import methods

if TYPE_CHECKING:
    from harebell.front.amqp_0_9_1.channel import Channel


def report(channel: Channel, method: methods.QueryReport) -> None:
    """query.report: keep what a query of the user reports."""
    check_some(channel, "a report on a query", *ACTIONS)
    connection = channel.connection
    channel.vhost.query_reports.add(connection.user.name, method.query, method.facts)
    connection.send(channel.number, methods.QueryReportOk())


HANDLERS: dict[type, Callable[[Any, Any], None]] = {methods.QueryReport: report}
