"""Commands for permissions, and for topic permissions."""

from __future__ import annotations

from collections.abc import Iterator
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated

from harebell.admin.catalog import PERMISSIONS, TOPIC_PERMISSIONS
from harebell.admin.command import ADMINISTRATOR, Argument, Row
from harebell.admin.context import AdminContext, CommandRefused, missing
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.auth.permissions import Permissions
    from harebell.auth.topics import TopicPermission
    from harebell.auth.users import User

ForVhost = Annotated[str, Argument("The vhost they are for.", "NAME")]
OnlyVhost = Annotated[str | None, Argument("Only those in this vhost.", "NAME")]
OnlyUser = Annotated[str | None, Argument("Only those of this user.", "NAME")]


def _users(context: AdminContext, user: str | None) -> list[User]:
    return list(context.users.all()) if user is None else [context.user(user)]


# --- permissions ----------------------------------------------------------------------------------


_COLUMNS = ("vhost", "user", "configure", "write", "read")
"""The columns: a pattern for each action, which says what a user may do in a vhost."""


def _row(vhost: str, user: User, permissions: Permissions) -> Row:
    actions = {action: getattr(permissions, action) for action in _COLUMNS[2:]}
    return {"vhost": vhost, "user": user.name, **actions}


@PERMISSIONS.listing(
    "permissions",
    "GET /api/permissions",
    "GET /api/users/{user}/permissions",
    "GET /api/vhosts/{vhost}/permissions",
    tag=ADMINISTRATOR,
    row=_COLUMNS,
)
def list_permissions(
    context: AdminContext, vhost: OnlyVhost = None, user: OnlyUser = None
) -> Slices[list[Row]]:
    """List permissions by vhost and user."""
    return gathered(_rows(context, vhost, user))


def _rows(context: AdminContext, vhost: str | None, user: str | None) -> Iterator[Row]:
    if vhost is not None:
        context.vhost(vhost)
    places = [
        (where, each.name, each)
        for each in _users(context, user)
        for where in each.permissions
        if vhost in (None, where)
    ]
    places.sort(key=itemgetter(0, 1))
    return (
        _row(where, each, each.permissions[where])
        for where, _, each in places
        # They may be cleared while the rows are made.
        if where in each.permissions
    )


@PERMISSIONS.command(
    "PUT /api/permissions/{vhost}/{user}",
    verb="set",
    tag=ADMINISTRATOR,
    done="the permissions of user '{user}' in vhost '{vhost}' were set",
)
def set_permissions(
    context: AdminContext, user: str, configure: str, write: str, read: str, vhost: ForVhost = "/"
) -> Row:
    """Let a user do what three patterns say, at once."""
    from harebell.admin.accounts import save_permissions
    from harebell.auth.permissions import PatternError, Permissions

    who, where = context.user(user), context.vhost(vhost)
    try:
        permissions = Permissions(configure, write, read)
    except PatternError as error:
        raise CommandRefused(str(error)) from None
    made = where.name not in who.permissions
    save_permissions(where.name, who, permissions, context.definitions)
    who.permissions[where.name] = permissions
    where.router.changed()
    context.log(
        "info",
        f"Successfully set permissions for '{who.name}' in virtual host '{where.name}' to "
        f"'{configure}', '{write}', '{read}'",
    )
    row = _row(where.name, who, permissions)
    context.broker.events.note("permission.created", row)
    return {**row, "made": made}


@PERMISSIONS.command(
    "DELETE /api/permissions/{vhost}/{user}",
    verb="clear",
    tag=ADMINISTRATOR,
    done="the permissions of user '{user}' in vhost '{vhost}' were cleared",
)
def clear_permissions(context: AdminContext, user: str, vhost: ForVhost = "/") -> Row:
    """Close a vhost to a user."""
    who, where = context.user(user), context.vhost(vhost)
    if where.name not in who.permissions:
        raise missing(
            f"user '{who.name}' has no permissions in vhost '{where.name}': "
            f"`harebell permissions list --user {who.name}` shows where"
        )
    context.definitions.drop("permission", (where.name, who.name))
    del who.permissions[where.name]
    where.router.changed()
    context.log(
        "info", f"Successfully cleared permissions for '{who.name}' in virtual host '{where.name}'"
    )
    context.broker.events.note("permission.deleted", {"user": who.name, "vhost": where.name})
    return {"vhost": where.name, "user": who.name}


@PERMISSIONS.over_http("GET /api/permissions/{vhost}/{user}", tag=ADMINISTRATOR)
def show_permissions(context: AdminContext, vhost: str, user: str) -> Row:
    """Return the permissions of a user in a vhost."""
    for row in _rows(context, vhost, user):
        return row
    raise missing(f"user '{user}' has no permissions in vhost '{vhost}'")


# --- topic permissions ----------------------------------------------------------------------------


_TOPIC_COLUMNS = ("vhost", "user", "exchange", "write", "read")
"""The columns: which routing keys a user may publish and bind with, on one exchange."""


def _topic_row(vhost: str, user: User, exchange: str, topic: TopicPermission) -> Row:
    return dict(
        zip(_TOPIC_COLUMNS, (vhost, user.name, exchange, topic.write, topic.read), strict=True)
    )


@TOPIC_PERMISSIONS.listing(
    "topic permissions",
    "GET /api/topic-permissions",
    "GET /api/users/{user}/topic-permissions",
    "GET /api/vhosts/{vhost}/topic-permissions",
    tag=ADMINISTRATOR,
    row=_TOPIC_COLUMNS,
)
def list_topic_permissions(
    context: AdminContext, vhost: OnlyVhost = None, user: OnlyUser = None
) -> list[Row]:
    """List topic permissions by vhost, user and exchange."""
    if vhost is not None:
        context.vhost(vhost)
    rows = [
        _topic_row(where, each, exchange, topic)
        for each in _users(context, user)
        for where, topics in each.topic_permissions.items()
        for exchange, topic in topics.items()
        if vhost in (None, where)
    ]
    return sorted(rows, key=lambda row: (row["vhost"], row["user"], row["exchange"]))


@TOPIC_PERMISSIONS.command(
    "PUT /api/topic-permissions/{vhost}/{user}",
    verb="set",
    tag=ADMINISTRATOR,
    done="the topic permissions of user '{user}' for exchange '{exchange}' in vhost '{vhost}' "
    "were set",
)
def set_topic_permissions(
    context: AdminContext, user: str, exchange: str, write: str, read: str, vhost: ForVhost = "/"
) -> Row:
    """Let a user publish and bind with the keys that two patterns match, and no others.

    {username} and {vhost} in a pattern stand for those names.
    """
    from harebell.admin.accounts import save_topic_permission
    from harebell.auth.permissions import PatternError
    from harebell.auth.topics import TopicPermission

    who, where = context.user(user), context.vhost(vhost)
    try:
        topic = TopicPermission(write, read, who.name, where.name)
    except PatternError as error:
        raise CommandRefused(str(error)) from None
    save_topic_permission(where.name, who, exchange, topic, context.definitions)
    topics = who.topic_permissions.setdefault(where.name, {})
    made = exchange not in topics
    topics[exchange] = topic
    where.router.changed()
    row = _topic_row(where.name, who, exchange, topic)
    context.broker.events.note("topic.permission.created", row)
    context.log(
        "info",
        f"Successfully set topic permissions on exchange '{exchange}' for '{who.name}' in virtual "
        f"host '{where.name}' to '{write}', '{read}'",
    )
    return {**row, "made": made}


@TOPIC_PERMISSIONS.command(
    "DELETE /api/topic-permissions/{vhost}/{user}: Allow a user every key in a vhost again.",
    verb="clear",
    tag=ADMINISTRATOR,
    done="topic permissions of user '{user}' in vhost '{vhost}' were cleared",
)
def clear_topic_permissions(
    context: AdminContext, user: str, exchange: str | None = None, vhost: ForVhost = "/"
) -> Row:
    """Allow every key again with EXCHANGE, or with all exchanges of the vhost."""
    who, where = context.user(user), context.vhost(vhost)
    held = who.topic_permissions.get(where.name, {})
    gone = [name for name in held if exchange in (None, name)]
    if not gone:
        which = "" if exchange is None else f" for exchange '{exchange}'"
        raise missing(
            f"user '{who.name}' has no topic permissions{which} in vhost '{where.name}': "
            f"`harebell topic-permissions list --user {who.name}` shows where"
        )
    with context.definitions.whole():
        for name in gone:
            context.definitions.drop("topic_permission", (where.name, who.name, name))
    for name in gone:
        del held[name]
    if not held:
        who.topic_permissions.pop(where.name, None)
    where.router.changed()
    context.broker.events.note("topic.permission.deleted", {"user": who.name, "vhost": where.name})
    context.log(
        "info",
        f"Successfully cleared topic permissions for '{who.name}' in virtual host '{where.name}'",
    )
    return {"vhost": where.name, "user": who.name, "exchanges": gone}


@TOPIC_PERMISSIONS.over_http("GET /api/topic-permissions/{vhost}/{user}", tag=ADMINISTRATOR)
def topic_permissions_by_exchange(context: AdminContext, vhost: str, user: str) -> list[Row]:
    """Return the topic permissions of a user in a vhost."""
    topic_permissions = list_topic_permissions(context, vhost, user)
    if not topic_permissions:
        raise missing(f"user '{user}' has no topic permissions in vhost '{vhost}'")
    return topic_permissions


@TOPIC_PERMISSIONS.over_http(
    "GET /api/topic-permissions/{vhost}/{user}/{exchange}", tag=ADMINISTRATOR
)
def show_topic_permission(context: AdminContext, vhost: str, user: str, exchange: str) -> Row:
    """Return the topic permissions of a user for an exchange."""
    for row in list_topic_permissions(context, vhost, user):
        if row["exchange"] == exchange:
            return row
    raise missing(f"user '{user}' has no topic permissions for exchange '{exchange}'")


@TOPIC_PERMISSIONS.over_http(
    "DELETE /api/topic-permissions/{vhost}/{user}/{exchange}", tag=ADMINISTRATOR
)
def delete_topic_permission(context: AdminContext, vhost: str, user: str, exchange: str) -> Row:
    """Forget the topic permissions of a user for an exchange."""
    return clear_topic_permissions(context, user, exchange, vhost)
