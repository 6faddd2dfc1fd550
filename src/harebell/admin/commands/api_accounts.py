"""Users, their limits and their permissions, as the HTTP API names them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from harebell.admin.catalog import API_ACCOUNTS
from harebell.admin.command import ADMINISTRATOR, Row
from harebell.admin.commands import limits, permissions
from harebell.admin.commands.users import delete as delete_user
from harebell.admin.context import AdminContext, CommandRefused, checked_name, missing
from harebell.base.limits import USER_NAME_BYTES
from harebell.base.slices import Slices

if TYPE_CHECKING:
    from harebell.auth.users import User


def _row(user: User) -> Row:
    from harebell.admin.accounts import user_limits

    return {
        "name": user.name,
        "password_hash": user.password_hash,
        "hashing_algorithm": user.algorithm,
        "tags": list(user.tags),
        "limits": user_limits(user),
        "loopback_only": user.loopback_only,
    }


def _sorted(context: AdminContext) -> list[User]:
    return sorted(context.users.all(), key=lambda user: user.name)


@API_ACCOUNTS.command("GET /api/users", tag=ADMINISTRATOR)
def users(context: AdminContext) -> list[Row]:
    """Return all users, with the hashes of their passwords."""
    return [_row(user) for user in _sorted(context)]


@API_ACCOUNTS.command("GET /api/users/without-permissions", tag=ADMINISTRATOR)
def users_without_permissions(context: AdminContext) -> list[Row]:
    """Return the users that may not open any vhost."""
    return [_row(user) for user in _sorted(context) if not user.permissions]


@API_ACCOUNTS.command("GET /api/users/{name}", tag=ADMINISTRATOR)
def user(context: AdminContext, name: str) -> Row:
    """Return a user, with the hash of the password."""
    return _row(context.user(name))


def _tags(tags: str | list[str]) -> tuple[str, ...]:
    from harebell.admin.commands.users import checked_tags

    words = tags.split(",") if isinstance(tags, str) else tags
    return checked_tags([word.strip() for word in words if word.strip()])


@API_ACCOUNTS.command("PUT /api/users/{name}", tag=ADMINISTRATOR)
def put_user(
    context: AdminContext,
    name: str,
    tags: str | list[str],
    password: str | None = None,
    password_hash: str | None = None,
    hashing_algorithm: str | None = None,
) -> Slices[Row]:
    """Add a user, or replace tags and password of one.

    Without a password, and with an empty hash, the user cannot log in with a password.
    """
    from harebell.admin.accounts import save_user
    from harebell.auth.passwords import SHA256, fault_of, known_algorithm
    from harebell.auth.users import User

    checked_name(name, "user", USER_NAME_BYTES)
    checked = _tags(tags)
    algorithm = hashing_algorithm or SHA256
    if not known_algorithm(algorithm):
        raise CommandRefused(f"the hashing algorithm '{algorithm}' is unknown")
    if password_hash:
        fault = fault_of(password_hash, algorithm)
        if fault:
            raise CommandRefused(fault)
    secrets = None
    if password_hash is None and password:
        complaint = context.users.complaint(name, password)
        if complaint:
            raise CommandRefused(complaint)
        secrets = yield from context.users.deriving(password)
    found = context.users.get(name)
    made = found is None
    if found is None:
        found = User(name, "")
        context.users.put(found)
    found.tags = checked
    if secrets is not None:
        context.users.give(found, secrets)
    else:
        found.password_hash, found.algorithm = password_hash or "", algorithm
        found.verifiers, found.cram, found.proof = {}, b"", None
    save_user(found, context.definitions)
    context.log(
        "info",
        f"Created user '{name}'" if made else f"Successfully changed password for user '{name}'",
    )
    context.log("info", f"Successfully set user tags for user '{name}' to [{','.join(checked)}]")
    context.broker.events.note("user.created" if made else "user.password.changed", {"name": name})
    context.broker.events.note("user.tags.set", {"name": name, "tags": found.tags})
    return {"name": name, "made": made}


@API_ACCOUNTS.command("POST /api/users/bulk-delete", tag=ADMINISTRATOR)
def bulk_delete(context: AdminContext, users: list[str]) -> Row:
    """Delete several users, all of them or none."""
    names = dict.fromkeys(users)
    for name in names:
        context.user(name)
    if len(names) == len(context.users.all()):
        raise CommandRefused("these are all users: leave one, so that somebody can log in")
    for name in names:
        delete_user(context, name)
    return {}


@API_ACCOUNTS.command("GET /api/users/{user}/permissions", tag=ADMINISTRATOR)
def permissions_of_user(context: AdminContext, user: str) -> list[Row]:
    """Return the permissions of a user."""
    return [{**row} for row in permissions.list_permissions(context, user=user)]


@API_ACCOUNTS.command("GET /api/users/{user}/topic-permissions", tag=ADMINISTRATOR)
def topic_permissions_of_user(context: AdminContext, user: str) -> list[Row]:
    """Return the topic permissions of a user."""
    return [{**row} for row in permissions.list_topic_permissions(context, user=user)]


@API_ACCOUNTS.command("GET /api/vhosts/{vhost}/permissions", tag=ADMINISTRATOR)
def permissions_of_vhost(context: AdminContext, vhost: str) -> list[Row]:
    """Return the permissions in a vhost."""
    return [{**row} for row in permissions.list_permissions(context, vhost)]


@API_ACCOUNTS.command("GET /api/vhosts/{vhost}/topic-permissions", tag=ADMINISTRATOR)
def topic_permissions_of_vhost(context: AdminContext, vhost: str) -> list[Row]:
    """Return the topic permissions in a vhost."""
    return [{**row} for row in permissions.list_topic_permissions(context, vhost)]


@API_ACCOUNTS.command("GET /api/permissions/{vhost}/{user}", tag=ADMINISTRATOR)
def permission(context: AdminContext, vhost: str, user: str) -> Row:
    """Return the permissions of a user in a vhost."""
    for row in permissions.list_permissions(context, vhost, user):
        return {**row}
    raise missing(f"user '{user}' has no permissions in vhost '{vhost}'")


@API_ACCOUNTS.command("GET /api/topic-permissions/{vhost}/{user}", tag=ADMINISTRATOR)
def topic_permissions(context: AdminContext, vhost: str, user: str) -> list[Row]:
    """Return the topic permissions of a user in a vhost."""
    found = permissions.list_topic_permissions(context, vhost, user)
    if not found:
        raise missing(f"user '{user}' has no topic permissions in vhost '{vhost}'")
    return [{**row} for row in found]


@API_ACCOUNTS.command("GET /api/topic-permissions/{vhost}/{user}/{exchange}", tag=ADMINISTRATOR)
def topic_permission(context: AdminContext, vhost: str, user: str, exchange: str) -> Row:
    """Return the topic permissions of a user for an exchange."""
    for row in permissions.list_topic_permissions(context, vhost, user):
        if row["exchange"] == exchange:
            return {**row}
    raise missing(f"user '{user}' has no topic permissions for exchange '{exchange}'")


@API_ACCOUNTS.command("DELETE /api/topic-permissions/{vhost}/{user}/{exchange}", tag=ADMINISTRATOR)
def delete_topic_permission(context: AdminContext, vhost: str, user: str, exchange: str) -> Row:
    """Forget the topic permissions of a user for an exchange."""
    done: Row = permissions.clear_topic_permissions(context, user, exchange, vhost)
    return done


# --- limits ---------------------------------------------------------------------------------------


def _limits_of(name: str, kind: str, found: dict[str, int]) -> list[Row]:
    return [{kind: name, "value": found}] if found else []


def _vhost_limits(context: AdminContext, only: str | None) -> list[Row]:
    rows: list[Row] = []
    for vhost in context.vhosts(only):
        found = {row["limit"]: row["value"] for row in limits.list_limits(context, vhost.name)}
        rows += _limits_of(vhost.name, "vhost", found)
    return rows


@API_ACCOUNTS.command("GET /api/vhost-limits", tag=ADMINISTRATOR)
def vhost_limits(context: AdminContext) -> list[Row]:
    """Return the limits of all vhosts that have some."""
    return _vhost_limits(context, None)


@API_ACCOUNTS.command("GET /api/vhost-limits/{vhost}", tag=ADMINISTRATOR)
def limits_of_vhost(context: AdminContext, vhost: str) -> list[Row]:
    """Return the limits of a vhost."""
    return _vhost_limits(context, vhost)


def _user_limits(context: AdminContext, found: list[User]) -> list[Row]:
    from harebell.admin.accounts import user_limits

    return [row for each in found for row in _limits_of(each.name, "user", user_limits(each))]


@API_ACCOUNTS.command("GET /api/user-limits", tag=ADMINISTRATOR)
def all_user_limits(context: AdminContext) -> list[Row]:
    """Return the limits of all users that have some."""
    return _user_limits(context, _sorted(context))


@API_ACCOUNTS.command("GET /api/user-limits/{user}", tag=ADMINISTRATOR)
def limits_of_user(context: AdminContext, user: str) -> list[Row]:
    """Return the limits of a user."""
    return _user_limits(context, [context.user(user)])


def _change(name: str, value: int, known: tuple[str, ...]) -> dict[str, Any]:
    if name not in known:
        raise CommandRefused(f"the limit '{name}' is unknown: it is one of {', '.join(known)}")
    return {name.replace("-", "_"): value}


@API_ACCOUNTS.command("PUT /api/vhost-limits/{vhost}/{name}", tag=ADMINISTRATOR)
def put_vhost_limit(context: AdminContext, vhost: str, name: str, value: int) -> Row:
    """Set a limit of a vhost; a negative number is no limit."""
    change = _change(name, value, ("max-connections", "max-queues"))
    limits.set_limits(context, vhost, **change)
    return {}


@API_ACCOUNTS.command("DELETE /api/vhost-limits/{vhost}/{name}", tag=ADMINISTRATOR)
def delete_vhost_limit(context: AdminContext, vhost: str, name: str) -> Row:
    """Take a limit from a vhost."""
    done: Row = put_vhost_limit(context, vhost, name, -1)
    return done


@API_ACCOUNTS.command("PUT /api/user-limits/{user}/{name}", tag=ADMINISTRATOR)
def put_user_limit(context: AdminContext, user: str, name: str, value: int) -> Row:
    """Set a limit of a user; a negative number is no limit."""
    change = _change(name, value, ("max-connections", "max-channels"))
    limits.set_limits(context, None, user, **change)
    return {}


@API_ACCOUNTS.command("DELETE /api/user-limits/{user}/{name}", tag=ADMINISTRATOR)
def delete_user_limit(context: AdminContext, user: str, name: str) -> Row:
    """Take a limit from a user."""
    done: Row = put_user_limit(context, user, name, -1)
    return done
