"""Commands for users and what they may do: `harebell users`, `harebell permissions`."""

from __future__ import annotations

from typing import Any

from harebell.admin.accounts import save_permissions, save_user
from harebell.admin.context import AdminContext, Command, Fields, Refused, checked_name
from harebell.auth.permissions import ACTIONS, PatternError, Permissions
from harebell.auth.users import User
from harebell.base.limits import USER_NAME_BYTES
from harebell.base.slices import Slices


class Named(Fields):
    """The user it is about."""

    name: str


class Password(Named):
    """A user and a password."""

    password: str


class Add(Password):
    """A new user."""

    tags: list[str] = []


class Tags(Named):
    """A user and all tags that it shall have."""

    tags: list[str]


class Filter(Fields):
    """Permissions of one vhost, of one user, or of all."""

    vhost: str | None = None
    user: str | None = None


class Held(Fields):
    """Whose permissions, and where."""

    user: str
    vhost: str


class Granted(Held):
    """Permissions: a pattern for each action."""

    configure: str
    write: str
    read: str


# --- users --------------------------------------------------------------------------------------


def _shown(user: User) -> dict[str, Any]:
    return {
        "name": user.name,
        "tags": list(user.tags),
        "loopback_only": user.loopback_only,
        "hashing_algorithm": user.algorithm,
    }


def _tags(tags: list[str]) -> tuple[str, ...]:
    """Tags, each once, in their order."""
    for tag in tags:
        if not tag or "," in tag or tag != tag.strip():
            raise Refused(
                f"the tag '{tag}' cannot be used: a tag has no comma, and no space at its ends"
            )
    return tuple(dict.fromkeys(tags))


def _password(password: str) -> str:
    if not password:
        raise Refused("the password is empty, and nobody could log in with it: give another")
    return password


def list_users(context: AdminContext, _: Fields) -> list[dict[str, Any]]:
    """All users by name; never their hashes."""
    return [_shown(user) for user in sorted(context.users.all(), key=lambda user: user.name)]


def _check_new(context: AdminContext, name: str) -> None:
    if context.users.get(name) is not None:
        raise Refused(
            f"there is a user '{name}' already: change it with `harebell users password` or "
            "`harebell users tags`"
        )


def add_user(context: AdminContext, asked: Add) -> Slices[dict[str, Any]]:
    """A new user, who may do nothing yet."""
    name = checked_name(asked.name, "user", USER_NAME_BYTES)
    _check_new(context, name)
    tags, password = _tags(asked.tags), _password(asked.password)
    secrets = yield from context.users.deriving(password)
    # Somebody else may have added one meanwhile.
    _check_new(context, name)
    user = User(name, "", tags=tags)
    context.users.give(user, secrets)
    context.users.put(user)
    save_user(user, context.definitions)
    context.log("info", f"user '{name}' was added")
    context.broker.events.note("user.created", {"name": name})
    return _shown(user)


def delete_user(context: AdminContext, asked: Named) -> dict[str, Any]:
    """Away with a user, the permissions and the connections."""
    user = context.user(asked.name)
    if len(context.users.all()) == 1:
        raise Refused(
            f"user '{user.name}' is the last one, and a broker without users makes its default "
            "user again at the next start: add another first with `harebell users add`"
        )
    context.users.remove(user.name)
    for vhost in user.permissions:
        context.definitions.drop("permission", (vhost, user.name))
    for vhost, topics in user.topic_permissions.items():
        for exchange in topics:
            context.definitions.drop("topic_permission", (vhost, user.name, exchange))
    context.definitions.drop("user", (user.name,))
    context.log("info", f"user '{user.name}' was deleted")
    context.broker.events.note("user.deleted", {"name": user.name})
    closed = context.disconnect(
        f"user '{user.name}' is deleted", lambda connection: connection.user is user
    )
    return {"name": user.name, "connections_closed": closed}


def set_password(context: AdminContext, asked: Password) -> Slices[dict[str, Any]]:
    """Another password, for the next login."""
    context.user(asked.name)
    secrets = yield from context.users.deriving(_password(asked.password))
    # It may be gone by now.
    user = context.user(asked.name)
    context.users.give(user, secrets)
    save_user(user, context.definitions)
    context.log("info", f"the password of user '{user.name}' was changed")
    context.broker.events.note("user.password.changed", {"name": user.name})
    return _shown(user)


def authenticate(context: AdminContext, asked: Password) -> dict[str, Any]:
    """Whether a user could log in from this machine with a password."""
    if context.users.authenticate(asked.name, asked.password, "") is None:
        raise Refused(f"user '{asked.name}' cannot log in with this password")
    return {"name": asked.name}


def set_tags(context: AdminContext, asked: Tags) -> dict[str, Any]:
    """These tags and no other."""
    user = context.user(asked.name)
    user.tags = _tags(asked.tags)
    save_user(user, context.definitions)
    context.log("info", f"the tags of user '{user.name}' are: {', '.join(user.tags) or 'none'}")
    context.broker.events.note("user.tags.set", {"name": user.name, "tags": user.tags})
    return _shown(user)


# --- permissions --------------------------------------------------------------------------------


def _row(vhost: str, user: User, permissions: Permissions) -> dict[str, Any]:
    patterns = {action: getattr(permissions, action) for action in ACTIONS}
    return {"vhost": vhost, "user": user.name, **patterns}


def list_permissions(context: AdminContext, asked: Filter) -> list[dict[str, Any]]:
    """Permissions by vhost and user."""
    if asked.vhost is not None:
        context.vhost(asked.vhost)
    users = context.users.all() if asked.user is None else [context.user(asked.user)]
    rows = [
        _row(vhost, user, permissions)
        for user in users
        for vhost, permissions in user.permissions.items()
        if asked.vhost in (None, vhost)
    ]
    return sorted(rows, key=lambda row: (row["vhost"], row["user"]))


def set_permissions(context: AdminContext, asked: Granted) -> dict[str, Any]:
    """These permissions from now on, also on connections that are open."""
    user, vhost = context.user(asked.user), context.vhost(asked.vhost)
    try:
        permissions = Permissions(asked.configure, asked.write, asked.read)
    except PatternError as error:
        raise Refused(str(error)) from None
    user.permissions[vhost.name] = permissions
    vhost.router.changed()
    save_permissions(vhost.name, user, permissions, context.definitions)
    context.log("info", f"the permissions of user '{user.name}' in vhost '{vhost.name}' were set")
    context.broker.events.note("permission.created", _row(vhost.name, user, permissions))
    return _row(vhost.name, user, permissions)


def clear_permissions(context: AdminContext, asked: Held) -> dict[str, Any]:
    """No permissions in a vhost; it is closed to the user at the next login."""
    user, vhost = context.user(asked.user), context.vhost(asked.vhost)
    if user.permissions.pop(vhost.name, None) is None:
        raise Refused(
            f"user '{user.name}' has no permissions in vhost '{vhost.name}': "
            f"`harebell permissions list --user {user.name}` shows where"
        )
    vhost.router.changed()
    context.definitions.drop("permission", (vhost.name, user.name))
    context.log(
        "info", f"the permissions of user '{user.name}' in vhost '{vhost.name}' were cleared"
    )
    context.broker.events.note("permission.deleted", {"user": user.name, "vhost": vhost.name})
    return {"vhost": vhost.name, "user": user.name}


COMMANDS = {
    "users.list": Command(Fields, list_users),
    "users.add": Command(Add, add_user),
    "users.delete": Command(Named, delete_user),
    "users.password": Command(Password, set_password),
    "users.authenticate": Command(Password, authenticate),
    "users.tags": Command(Tags, set_tags),
    "permissions.list": Command(Filter, list_permissions),
    "permissions.set": Command(Granted, set_permissions),
    "permissions.clear": Command(Held, clear_permissions),
}
