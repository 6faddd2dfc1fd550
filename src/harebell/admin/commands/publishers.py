"""Commands for named publishers: what they have published, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.arguments import InVhost, OnlyVhost
from harebell.admin.catalog import PUBLISHERS
from harebell.admin.command import ADMINISTRATOR, MANAGEMENT, Argument, Row, plural
from harebell.admin.context import AdminContext, CommandRefused, WrongArgument, missing
from harebell.admin.rows.common import Columns, row_of
from harebell.base.errors import Refusal
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.model.publishing.publishers import Entry


_KINDS = ("", "batches", "numbers")
_COLUMNS: Columns = {
    "vhost": lambda entry: entry.key.vhost,
    "user": lambda entry: entry.key.user,
    "name": lambda entry: entry.key.name,
    "kind": lambda entry: _KINDS[entry.key.kind],
    "next": lambda entry: entry.next,
    "used_at": lambda entry: entry.used,
    "channels": lambda entry: entry.holders,
}


@PUBLISHERS.listing(
    "named publishers",
    "GET /api/publishers",
    "GET /api/publishers/{vhost}",
    tag=MANAGEMENT,
    row=_COLUMNS,
    shown=tuple(_COLUMNS),
)
def list_publishers(context: AdminContext, vhost: OnlyVhost = None) -> Slices[list[Row]]:
    """List publishers by vhost and user: one's own, or all for those who see everything."""
    return gathered(
        row_of(_COLUMNS, entry)
        for each in context.vhosts(vhost)
        for entry in context.broker.publishers.of(each.name)
        if context.may_see_work_of(entry.key.user)
    )


def _handed(outcome: Mapping[str, Any]) -> str:
    count = plural(outcome["publishers"], "publisher")
    vhost, heir = outcome["vhost"], outcome["to"]
    return f"{count} of '{outcome['publisher']}' in vhost '{vhost}' went to '{heir}'"


@PUBLISHERS.command(
    "POST /api/publishers/{vhost}/{publisher}/hand-over",
    tag=ADMINISTRATOR,
    done=_handed,
    status=200,
)
def hand_over(
    context: AdminContext,
    publisher: str,
    to: Annotated[str, Argument("The user who goes on with it.", "USER")],
    vhost: InVhost = "/",
    user: Annotated[
        str | None, Argument("Whose publisher, where several users have one.", "NAME")
    ] = None,
) -> Row:
    """Let another user go on with a publisher, and with those that have "/" and more after it.

    Numbers and batches that it has published are not published again. What is staged is dropped.
    """
    where = context.vhost(vhost).name
    _check_writes(context, where, to)
    publishers = [each for each in _found(context, where, publisher, user) if each.key.user != to]
    if not publishers:
        raise CommandRefused(f"user '{to}' has publisher '{publisher}' in vhost '{where}' already")
    _one_user(publisher, publishers)
    before = publishers[0].key.user
    try:
        context.broker.hand_over_publishers(publishers, to)
    except Refusal as refusal:
        raise CommandRefused(refusal.text, refusal.kind) from None
    context.log(
        "warning",
        f"publisher '{publisher}' in vhost '{where}' was handed over from user '{before}' to "
        f"user '{to}'",
    )
    return {"vhost": where, "user": before, "to": to, "publishers": len(publishers)}


@PUBLISHERS.command(
    "DELETE /api/publishers/{vhost}/{publisher}",
    tag=ADMINISTRATOR,
    done="publisher '{publisher}' of user '{user}' in vhost '{vhost}' was forgotten",
)
def forget(
    context: AdminContext,
    publisher: str,
    vhost: InVhost = "/",
    user: Annotated[
        str | None, Argument("Whose publisher, where several users have one.", "NAME")
    ] = None,
) -> Row:
    """Forget what a publisher has published: its next repetition is published again."""
    where = context.vhost(vhost).name
    publishers = _found(context, where, publisher, user)
    _one_user(publisher, publishers)
    owner = publishers[0].key.user
    try:
        context.broker.forget_publishers(publishers)
    except Refusal as refusal:
        raise CommandRefused(refusal.text, refusal.kind) from None
    context.log("warning", f"publisher '{publisher}' of user '{owner}' was forgotten")
    return {"vhost": where, "user": owner, "publishers": len(publishers)}


def _check_writes(context: AdminContext, vhost: str, user: str) -> None:
    """Refuse a user who could not use a publisher; users of other backends are not known here.

    Raises:
        CommandRefused: there is no such user, or the user may write to nothing in the vhost.
    """
    from harebell.auth.permissions import WRITE

    if not user:
        raise WrongArgument("to: a publisher needs a user, give --to USER")
    if context.users.log_in is not None and context.users.get(user) is None:
        return
    if not context.user(user).allows_some(vhost, WRITE):
        raise CommandRefused(
            f"user '{user}' may write to nothing in vhost '{vhost}', and so have no publisher: "
            f"`harebell permissions set {user}` changes that"
        )


def _found(context: AdminContext, vhost: str, name: str, user: str | None) -> list[Entry]:
    """Return the publishers of a query.

    Raises:
        CommandRefused: there is none.
    """
    publishers = context.broker.publishers.query(vhost, name, user)
    if not publishers:
        whose = "" if user is None else f" of user '{user}'"
        raise missing(
            f"no publisher '{name}'{whose} in vhost '{vhost}': `harebell publishers list` shows all"
        )
    return publishers


def _one_user(name: str, publishers: list[Entry]) -> None:
    """Refuse publishers of several users.

    Raises:
        CommandRefused: they are.
    """
    users = sorted({each.key.user for each in publishers})
    if len(users) > 1:
        raise CommandRefused(
            f"the users {', '.join(users)} have a publisher '{name}' each: say whose with --user"
        )
