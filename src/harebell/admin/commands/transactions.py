"""Commands for branches of distributed transactions: `harebell transactions`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from harebell.admin.context import AdminContext, Command, Fields, Refused
from harebell.base.slices import at_once
from harebell.model.branch import OPERATOR, Branch
from harebell.model.xa import Branches
from harebell.model.xa_states import State, Status
from harebell.model.xid import FORMAT_0_8, Xid, XidError, xid_of_text

_MS = 1000


class Filter(Fields):
    """Branches of one vhost, or of all."""

    vhost: str | None = None


class Named(Fields):
    """Which branch, and where."""

    xid: str
    vhost: str


def facts(branch: Branch) -> dict[str, Any]:
    """What there is to say about a branch."""
    publishes, settled = branch.pending()
    moment = ""
    if branch.moment:
        moment = datetime.fromtimestamp(branch.moment // _MS, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return {
        "vhost": branch.vhost,
        "xid": str(branch.xid),
        "state": branch.state.value,
        "user": branch.user,
        "sessions": branch.sessions,
        "messages_published": publishes,
        "messages_settled": settled,
        "timeout": branch.timeout,
        "prepared_at": moment,
    }


def list_transactions(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """Branches by vhost, the oldest first."""
    vhost = None if asked.vhost is None else context.vhost(asked.vhost).name
    found = context.broker.branches.of(vhost)
    return [facts(branch) for branch in sorted(found, key=lambda each: each.vhost)]


def _found(context: AdminContext, asked: Named) -> tuple[Branches, str, Xid]:
    branches = context.broker.branches
    vhost = context.vhost(asked.vhost).name
    try:
        xid = xid_of_text(asked.xid)
    except XidError as error:
        raise Refused(str(error)) from None
    if branches.find(vhost, xid) is None:
        raise Refused(
            f"no transaction {xid} in vhost '{vhost}': `harebell transactions list` shows all"
        )
    return branches, vhost, xid


def _end(context: AdminContext, asked: Named, *, commit: bool) -> dict[str, Any]:
    """Decide about a prepared branch, or coordinate one of AMQP 0-8, which has no other way."""
    branches, vhost, xid = _found(context, asked)
    branch = branches.find(vhost, xid)
    assert branch is not None
    prepared = branch.state is State.PREPARED
    if xid.format != FORMAT_0_8:
        status = branches.decide(vhost, xid, commit=commit).status
    elif commit:
        status = at_once(branches.commit(vhost, xid, OPERATOR, one_phase=not prepared)).status
    else:
        status = at_once(branches.rollback(vhost, xid, OPERATOR)).status
    done = "committed" if commit and status is Status.OK else "rolled back"
    context.log("warning", f"transaction {xid} in vhost '{vhost}' was {done} by an operator")
    return {"vhost": vhost, "xid": str(xid), "done": done}


def commit(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Commit a branch in the place of its transaction manager."""
    return _end(context, asked, commit=True)


def rollback(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Roll a branch back in the place of its transaction manager."""
    return _end(context, asked, commit=False)


def prepare(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Prepare a branch whose sessions are done; for a coordinator that speaks no AMQP."""
    branches, vhost, xid = _found(context, asked)
    status = at_once(branches.prepare(vhost, xid, OPERATOR)).status
    done = {Status.OK: "prepared", Status.READ_ONLY: "committed"}.get(status, "rolled back")
    return {"vhost": vhost, "xid": str(xid), "done": done}


def forget(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Forget a decision, when its transaction manager will never ask."""
    branches, vhost, xid = _found(context, asked)
    branches.forget(vhost, xid, OPERATOR)
    context.log("info", f"transaction {xid} in vhost '{vhost}' was forgotten")
    return {"vhost": vhost, "xid": str(xid), "done": "forgotten"}


COMMANDS = {
    "transactions.list": Command(Filter, list_transactions),
    "transactions.prepare": Command(Named, prepare),
    "transactions.commit": Command(Named, commit),
    "transactions.rollback": Command(Named, rollback),
    "transactions.forget": Command(Named, forget),
}
