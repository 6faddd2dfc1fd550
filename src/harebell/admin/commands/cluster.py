"""Commands about the brokers that share a store in PostgreSQL."""

from __future__ import annotations

from typing import TypedDict

from harebell.admin.catalog import CLUSTER
from harebell.admin.command import ADMINISTRATOR, MONITORING, Row
from harebell.admin.context import AdminContext


class Member(TypedDict):
    """A broker of the store."""

    name: str
    state: str
    running: bool
    address: str
    version: str


@CLUSTER.command("GET /api/cluster/status", tag=MONITORING, row=Member)
def status(context: AdminContext) -> list[Row]:
    """Print the brokers that share the store: which one owns it, and which stand by."""
    return [*context.brokers()]


@CLUSTER.command(
    "POST /api/cluster/drain",
    tag=ADMINISTRATOR,
    done="the store goes to another broker; connections are closed with 320",
)
def drain(context: AdminContext) -> Row:
    """Give the store to another broker, and stand by.

    Everything is written first, and clients are told to connect again. This broker claims the
    store only if no other does for some seconds.
    """
    context.operation.hand_over("")
    return {}


@CLUSTER.command(
    "POST /api/cluster/move/{name}",
    tag=ADMINISTRATOR,
    done="the store goes to that broker; connections are closed with 320",
)
def move(context: AdminContext, name: str) -> Row:
    """Give the store to the broker NAME, and stand by."""
    context.operation.hand_over(name)
    return {}
