"""Commands for topic permissions: `harebell topic-permissions`."""

from __future__ import annotations

from typing import Any

from harebell.admin.accounts import save_topic_permission
from harebell.admin.context import AdminContext, Command, Fields, Refused
from harebell.auth.permissions import PatternError
from harebell.auth.topics import TopicPermission
from harebell.auth.users import User


class Filter(Fields):
    """Those of one vhost, of one user, or all."""

    vhost: str | None = None
    user: str | None = None


class Held(Fields):
    """Whose, where, and for which exchange; without one for every exchange there."""

    user: str
    vhost: str
    exchange: str | None = None


class Granted(Fields):
    """A pattern for the keys to publish with, and one for those to bind with."""

    user: str
    vhost: str
    exchange: str
    write: str
    read: str


def _row(user: User, vhost: str, exchange: str, topic: TopicPermission) -> dict[str, Any]:
    return {
        "vhost": vhost,
        "user": user.name,
        "exchange": exchange,
        "write": topic.write,
        "read": topic.read,
    }


def list_topics(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """Topic permissions by vhost, user and exchange."""
    if asked.vhost is not None:
        context.vhost(asked.vhost)
    users = context.users.all() if asked.user is None else [context.user(asked.user)]
    rows = [
        _row(user, vhost, exchange, topic)
        for user in users
        for vhost, topics in user.topic_permissions.items()
        for exchange, topic in topics.items()
        if asked.vhost in (None, vhost)
    ]
    return sorted(rows, key=lambda row: (row["vhost"], row["user"], row["exchange"]))


def set_topics(context: AdminContext, asked: Granted) -> dict[str, Any]:
    """These topic permissions from now on, also on channels that are open."""
    user, vhost = context.user(asked.user), context.vhost(asked.vhost)
    try:
        topic = TopicPermission(asked.write, asked.read, user.name, vhost.name)
    except PatternError as error:
        raise Refused(str(error)) from None
    user.topic_permissions.setdefault(vhost.name, {})[asked.exchange] = topic
    vhost.router.changed()
    save_topic_permission(vhost.name, user, asked.exchange, topic, context.definitions)
    row = _row(user, vhost.name, asked.exchange, topic)
    context.broker.events.note("topic.permission.created", row)
    context.log(
        "info",
        f"the topic permissions of user '{user.name}' for exchange '{asked.exchange}' in vhost "
        f"'{vhost.name}' were set",
    )
    return row


def clear_topics(context: AdminContext, asked: Held) -> dict[str, Any]:
    """Every key is allowed again, with one exchange or with all of a vhost."""
    user, vhost = context.user(asked.user), context.vhost(asked.vhost)
    held = user.topic_permissions.get(vhost.name, {})
    gone = [name for name in held if asked.exchange in (None, name)]
    if not gone:
        where = "" if asked.exchange is None else f" for exchange '{asked.exchange}'"
        raise Refused(
            f"user '{user.name}' has no topic permissions{where} in vhost '{vhost.name}': "
            f"`harebell topic-permissions list --user {user.name}` shows where"
        )
    for name in gone:
        del held[name]
        context.definitions.drop("topic_permission", (vhost.name, user.name, name))
    if not held:
        user.topic_permissions.pop(vhost.name, None)
    vhost.router.changed()
    context.broker.events.note("topic.permission.deleted", {"user": user.name, "vhost": vhost.name})
    context.log(
        "info", f"topic permissions of user '{user.name}' in vhost '{vhost.name}' were cleared"
    )
    return {"vhost": vhost.name, "user": user.name, "exchanges": gone}


COMMANDS = {
    "topic-permissions.list": Command(Filter, list_topics),
    "topic-permissions.set": Command(Granted, set_topics),
    "topic-permissions.clear": Command(Held, clear_topics),
}
