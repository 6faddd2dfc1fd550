"""Commands for branches of distributed transactions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from harebell.admin.arguments import InVhost, OnlyVhost
from harebell.admin.catalog import TRANSACTIONS
from harebell.admin.command import ADMINISTRATOR, MANAGEMENT, Row
from harebell.admin.context import AdminContext, CommandRefused
from harebell.admin.rows.common import Columns, row_of
from harebell.base.slices import at_once

if TYPE_CHECKING:
    from harebell.model.xa.branches import Branches
    from harebell.model.xa.xid import Xid

_MS = 1000
_DONE = "transaction {xid} in vhost '{vhost}' was {done}"
_COLUMNS: Columns = {
    "vhost": lambda branch: branch.vhost,
    "xid": lambda branch: str(branch.xid),
    "state": lambda branch: branch.state.value,
    "user": lambda branch: branch.user,
    "sessions": lambda branch: branch.sessions,
    "messages_published": lambda branch: branch.pending()[0],
    "messages_settled": lambda branch: branch.pending()[1],
    "timeout": lambda branch: branch.timeout,
    "prepared_at": lambda branch: _time(branch.moment // _MS) if branch.moment else "",
}


def _time(seconds: int) -> str:
    from datetime import UTC, datetime

    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S")


@TRANSACTIONS.listing(
    "branches",
    tag=MANAGEMENT,
    row=_COLUMNS,
    shown=("vhost", "xid", "state", "messages_published", "messages_settled", "prepared_at"),
)
def list_transactions(
    context: AdminContext,
    vhost: OnlyVhost = None,
) -> list[Row]:
    """List branches by vhost, the oldest first."""
    only = None if vhost is None else context.vhost(vhost).name
    branches = context.broker.branches.of(only)
    return [row_of(_COLUMNS, branch) for branch in sorted(branches, key=lambda each: each.vhost)]


def _find(context: AdminContext, vhost: str, xid: str) -> tuple[Branches, str, Xid]:
    from harebell.model.xa.xid import XidError, xid_of_text

    branches = context.broker.branches
    where = context.vhost(vhost).name
    try:
        branch = xid_of_text(xid)
    except XidError as error:
        raise CommandRefused(str(error)) from None
    if branches.find(where, branch) is None:
        raise CommandRefused(
            f"no transaction {branch} in vhost '{where}': `harebell transactions list` shows all"
        )
    return branches, where, branch


def _end(context: AdminContext, vhost: str, text: str, *, commit: bool) -> Row:
    """Decide a prepared branch, or end one of AMQP 0-8, which only an operator can coordinate."""
    from harebell.model.xa.branch import OPERATOR
    from harebell.model.xa.states import State, Status
    from harebell.model.xa.xid import FORMAT_0_8

    branches, where, xid = _find(context, vhost, text)
    branch = branches.find(where, xid)
    assert branch is not None
    prepared = branch.state is State.PREPARED
    if xid.format != FORMAT_0_8:
        status = branches.decide(where, xid, commit=commit).status
    elif commit:
        status = at_once(branches.commit(where, xid, OPERATOR, one_phase=not prepared)).status
    else:
        status = at_once(branches.rollback(where, xid, OPERATOR)).status
    done = "committed" if commit and status is Status.OK else "rolled back"
    context.log("warning", f"transaction {xid} in vhost '{where}' was {done} by an operator")
    return {"vhost": where, "xid": str(xid), "done": done}


@TRANSACTIONS.command(tag=ADMINISTRATOR, done=_DONE)
def prepare(context: AdminContext, xid: str, vhost: InVhost = "/") -> Row:
    """Prepare a branch that no session works on any more."""
    from harebell.model.xa.branch import OPERATOR
    from harebell.model.xa.states import Status

    branches, where, branch = _find(context, vhost, xid)
    status = at_once(branches.prepare(where, branch, OPERATOR)).status
    done = {Status.OK: "prepared", Status.READ_ONLY: "committed"}.get(status, "rolled back")
    return {"vhost": where, "xid": str(branch), "done": done}


@TRANSACTIONS.command(tag=ADMINISTRATOR, done=_DONE)
def commit(context: AdminContext, xid: str, vhost: InVhost = "/") -> Row:
    """Commit a prepared branch whose transaction manager does not come back."""
    return _end(context, vhost, xid, commit=True)


@TRANSACTIONS.command(tag=ADMINISTRATOR, done=_DONE)
def rollback(context: AdminContext, xid: str, vhost: InVhost = "/") -> Row:
    """Roll back a prepared branch whose transaction manager does not come back."""
    return _end(context, vhost, xid, commit=False)


@TRANSACTIONS.command(tag=ADMINISTRATOR, done=_DONE)
def forget(context: AdminContext, xid: str, vhost: InVhost = "/") -> Row:
    """Forget the outcome of a branch that no coordinator will ask for."""
    from harebell.model.xa.branch import OPERATOR

    branches, where, branch = _find(context, vhost, xid)
    branches.forget(where, branch, OPERATOR)
    context.log("info", f"transaction {branch} in vhost '{where}' was forgotten")
    return {"vhost": where, "xid": str(branch), "done": "forgotten"}
