"""Commands for users."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from harebell.admin.catalog import USERS
from harebell.admin.command import ADMINISTRATOR, Argument, Form, Row, plural
from harebell.admin.context import AdminContext, CommandRefused, checked_name
from harebell.admin.limits import USER_NAME_BYTES
from harebell.admin.place import COMMON, EVERYWHERE, FIRST, HERE
from harebell.admin.rows.common import Columns, row_of
from harebell.base.slices import Slices, gathered

if TYPE_CHECKING:
    from harebell.auth.users import User

Password = Annotated[str, Argument(form=Form.SECRET)]
NO_TAGS: list[str] = []
_COLUMNS: Columns = {
    "name": lambda user: user.name,
    "tags": lambda user: list(user.tags),
    "loopback_only": lambda user: user.loopback_only,
    "hashing_algorithm": lambda user: user.algorithm,
}
"""What is shown of a user: not the hash of the password."""


def checked_tags(tags: list[str]) -> tuple[str, ...]:
    """Check tags; returns each once, in their order."""
    for tag in tags:
        if not tag or "," in tag or tag != tag.strip():
            raise CommandRefused(
                f"the tag '{tag}' cannot be used: a tag has no comma, and no space at its ends"
            )
    return tuple(dict.fromkeys(tags))


def _checked_password(context: AdminContext, name: str, password: str) -> str:
    if not password:
        raise CommandRefused("the password is empty, and no login accepts that: give another")
    complaint = context.users.complaint(name, password)
    if complaint:
        raise CommandRefused(complaint)
    return password


def _check_new(context: AdminContext, name: str) -> None:
    if context.users.get(name) is not None:
        raise CommandRefused(
            f"there is a user '{name}' already: change it with `harebell users password` or "
            "`harebell users tags`"
        )


@USERS.listing("users", tag=ADMINISTRATOR, row=_COLUMNS, place=HERE)
def list_users(context: AdminContext) -> Slices[list[Row]]:
    """List users by name."""
    return gathered(row_of(_COLUMNS, user) for user in context.users.by_name())


@USERS.command(tag=ADMINISTRATOR, done="user '{name}' was added")
def add(
    context: AdminContext,
    name: str,
    password: Password,
    tags: Annotated[
        list[str], Argument("Tags, such as administrator.", "TAG,...", Form.WORDS)
    ] = NO_TAGS,
) -> Slices[Row]:
    """Add a user; without PASSWORD it is read from standard input."""
    from harebell.admin.accounts import changing
    from harebell.auth.users import User

    checked_name(name, "user", USER_NAME_BYTES)
    _check_new(context, name)
    checked, given = checked_tags(tags), _checked_password(context, name, password)
    secrets = yield from context.users.deriving(given)
    # Another command may have added one while the password was hashed.
    _check_new(context, name)
    user = User(name, "", tags=checked)
    with changing(user, context.users, context.definitions):
        context.users.give(user, secrets)
    context.log("info", f"Created user '{name}'")
    context.broker.events.note("user.created", {"name": name})
    return row_of(_COLUMNS, user)


def closed_clause(outcome: Mapping[str, Any]) -> str:
    """A clause about connections that were closed, if any."""
    count = outcome["connections_closed"]
    return f", {plural(count, 'connection')} closed" if count else ""


@USERS.command(
    "DELETE /api/users/{name}",
    tag=ADMINISTRATOR,
    done=lambda outcome: f"user '{outcome['name']}' was deleted{closed_clause(outcome)}",
)
def delete(context: AdminContext, name: str) -> Slices[Row]:
    """Delete a user, and close the user's connections."""
    from harebell.admin.accounts import remove_users

    user = context.user(name)
    if len(context.users.all()) == 1:
        raise CommandRefused(
            f"user '{user.name}' is the last one, and a broker without users makes its default "
            "user again at the next start: add another first with `harebell users add`"
        )
    closed = yield from remove_users(context, [user])
    return {"name": user.name, "connections_closed": closed}


@USERS.command(verb="password", tag=ADMINISTRATOR, done="the password of user '{name}' was changed")
def set_password(context: AdminContext, name: str, password: Password) -> Slices[Row]:
    """Change a password; without PASSWORD it is read from standard input."""
    from harebell.admin.accounts import changing

    context.user(name)
    secrets = yield from context.users.deriving(_checked_password(context, name, password))
    # The user may have been deleted while the password was hashed.
    user = context.user(name)
    with changing(user, context.users, context.definitions):
        context.users.give(user, secrets)
    context.log("info", f"Successfully changed password for user '{user.name}'")
    context.broker.events.note("user.password.changed", {"name": user.name})
    return row_of(_COLUMNS, user)


@USERS.command(tag=ADMINISTRATOR, done="user '{name}' can log in with this password", place=HERE)
def authenticate(context: AdminContext, name: str, password: Password) -> Row:
    """Try a password as if from this machine; without PASSWORD it is read from standard input."""
    if context.users.authenticate(name, password, "") is None:
        raise CommandRefused(f"user '{name}' cannot log in with this password")
    return {"name": name}


def _tagged(outcome: Mapping[str, Any]) -> str:
    return f"the tags of user '{outcome['name']}' are: {', '.join(outcome['tags']) or 'none'}"


@USERS.command(verb="tags", tag=ADMINISTRATOR, done=_tagged)
def set_tags(
    context: AdminContext,
    name: str,
    tags: Annotated[list[str], Argument(metavar="[TAG]...", form=Form.WORDS)],
) -> Row:
    """Give a user these tags and no other."""
    from harebell.admin.accounts import changing

    user = context.user(name)
    with changing(user, context.users, context.definitions):
        user.tags = checked_tags(tags)
    context.log(
        "info", f"Successfully set user tags for user '{user.name}' to [{','.join(user.tags)}]"
    )
    context.broker.events.note("user.tags.set", {"name": user.name, "tags": user.tags})
    return row_of(_COLUMNS, user)


# --- over HTTP ------------------------------------------------------------------------------------


def _row_with_hash(user: User) -> Row:
    from harebell.admin.accounts import user_limits

    return {
        "name": user.name,
        "password_hash": user.password_hash,
        "hashing_algorithm": user.algorithm,
        "tags": list(user.tags),
        "limits": user_limits(user),
        "loopback_only": user.loopback_only,
    }


@USERS.over_http("GET /api/users", tag=ADMINISTRATOR, place=HERE)
def list_with_hashes(context: AdminContext) -> Slices[list[Row]]:
    """Return all users, with the hashes of their passwords."""
    return gathered(_row_with_hash(user) for user in context.users.by_name())


@USERS.over_http(
    "GET /api/users/without-permissions", tag=ADMINISTRATOR, place=EVERYWHERE, merge=COMMON
)
def list_without_permissions(context: AdminContext) -> Slices[list[Row]]:
    """Return the users that may not open any vhost."""
    return gathered(
        _row_with_hash(user) for user in context.users.by_name() if not user.permissions
    )


@USERS.over_http("GET /api/users/{name}", tag=ADMINISTRATOR, place=HERE)
def show(context: AdminContext, name: str) -> Row:
    """Return a user, with the hash of the password."""
    return _row_with_hash(context.user(name))


@USERS.over_http(tag=ADMINISTRATOR, place=FIRST)
def state(context: AdminContext, name: str) -> Row:
    """Return a user as the owner of store 1 has it, which is the first to know of changes."""
    return _row_with_hash(context.user(name))


def _tags_of(tags: str | list[str]) -> tuple[str, ...]:
    words = tags.split(",") if isinstance(tags, str) else tags
    return checked_tags([word.strip() for word in words if word.strip()])


@USERS.over_http("PUT /api/users/{name}", tag=ADMINISTRATOR)
def put(
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
    from harebell.admin.accounts import changing
    from harebell.auth.password_hashes import SHA256, fault_of, known_algorithm
    from harebell.auth.users import User

    checked_name(name, "user", USER_NAME_BYTES)
    checked = _tags_of(tags)
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
    user = context.users.get(name)
    made = user is None
    if user is None:
        user = User(name, "")
    with changing(user, context.users, context.definitions):
        user.tags = checked
        if secrets is not None:
            context.users.give(user, secrets)
        else:
            user.password_hash, user.algorithm = password_hash or "", algorithm
            user.verifiers, user.cram, user.proof = {}, b"", None
    context.log(
        "info",
        f"Created user '{name}'" if made else f"Successfully changed password for user '{name}'",
    )
    context.log("info", f"Successfully set user tags for user '{name}' to [{','.join(checked)}]")
    context.broker.events.note("user.created" if made else "user.password.changed", {"name": name})
    context.broker.events.note("user.tags.set", {"name": name, "tags": user.tags})
    return {"name": name, "made": made}


@USERS.over_http("POST /api/users/bulk-delete", tag=ADMINISTRATOR)
def bulk_delete(context: AdminContext, users: list[str]) -> Slices[Row]:
    """Delete several users, all of them or none."""
    from harebell.admin.accounts import remove_users

    accounts = [context.user(name) for name in dict.fromkeys(users)]
    if len(accounts) == len(context.users.all()):
        raise CommandRefused("these are all users: leave one, so that somebody can log in")
    yield from remove_users(context, accounts)
    return {}
