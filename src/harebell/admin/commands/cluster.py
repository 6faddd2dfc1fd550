"""Commands about the brokers of a cluster, which share stores in PostgreSQL."""

from __future__ import annotations

from typing import Annotated

from harebell.admin.catalog import CLUSTER
from harebell.admin.command import ADMINISTRATOR, MONITORING, Argument, Row
from harebell.admin.commands.operating import finished
from harebell.admin.context import AdminContext
from harebell.admin.place import EVERYWHERE, STORE
from harebell.base.slices import Slices

OnlyStore = Annotated[int | None, Argument("Only the store of this number.", "NUMBER")]


@CLUSTER.command(
    "GET /api/cluster/status",
    tag=MONITORING,
    row=(
        *("store", "name", "state", "running", "address", "version"),
        *("behind_bytes", "behind_seconds"),
    ),
    place=EVERYWHERE,
)
def status(context: AdminContext) -> list[Row]:
    """List the brokers of each store: which one owns it, and how far others are behind it."""
    return [*context.brokers()]


@CLUSTER.command(
    "POST /api/cluster/drain",
    tag=ADMINISTRATOR,
    done="the stores of this machine go to other brokers; connections are closed with 320",
)
def drain(context: AdminContext, store: OnlyStore = None) -> Slices[Row]:
    """Give the stores that this machine owns to other brokers, and stand by.

    Everything is written first, and clients are told to connect again. This broker claims a store
    only if no other does for some seconds.
    """
    yield from finished(context.operation.drain(store))
    return {}


@CLUSTER.command(
    "POST /api/cluster/move/{name}",
    tag=ADMINISTRATOR,
    place=STORE,
    done="store {store} goes to broker '{name}'; connections are closed with 320",
)
def move(
    context: AdminContext,
    name: str,
    store: Annotated[int, Argument("The store that moves.", "NUMBER")] = 1,
) -> Row:
    """Give a store to the broker NAME; its owner stands by then."""
    context.operation.hand_over(name, store)
    return {}
