"""Users, passwords, tags, permissions and topic permissions."""

from __future__ import annotations

import sys

from harebell_rabbitmq_compat.exits import DATA, NO_USER, UNAVAILABLE, VerbFailed
from harebell_rabbitmq_compat.tables import Rows, Word
from harebell_rabbitmq_compat.verb import ANY, CTL, MANY, Call, verb

_FIRST_SALT_BYTES = 4


def _password(call: Call, position: int, code: int) -> str:
    """Return the password from the arguments, or a line of standard input."""
    if len(call.arguments) > position:
        return call.arguments[position]
    if sys.stdin.isatty():
        from getpass import getpass

        return getpass("Password: ")
    line = sys.stdin.readline()
    if not line:
        raise VerbFailed("Password is not provided via argument or stdin", code)
    return line.rstrip("\r\n")


# --- users ----------------------------------------------------------------------------------------


@verb("[--no-table-headers]", banner="Listing users ...")
def list_users(call: Call) -> Rows:
    """Print users and their tags."""
    rows = [
        {"user": row["name"], "tags": [Word(tag) for tag in row["tags"]]}
        for row in call.ask("users.list")
    ]
    return Rows(["user", "tags"], rows)


@verb(
    "<username> <password>",
    arguments=(1, 2),
    flags={"pre-hashed-password": bool},
    tools=CTL,
    banner='Adding user "{0}" ...',
)
def add_user(call: Call) -> str:
    """Add a user; without a password it is read from standard input."""
    if call.flags.get("pre-hashed-password"):
        raise VerbFailed(
            "users are added with passwords: import a hash with `rabbitmqctl import_definitions`"
        )
    password = _password(call, 1, DATA)
    call.ask("users.add", name=call.arguments[0], password=password)
    if call.flags.get("quiet") or call.flags.get("silent"):
        return ""
    return (
        "Done. Don't forget to grant the user permissions to some virtual hosts! See "
        "'rabbitmqctl help set_permissions' to learn more."
    )


@verb(
    "<username> <password>",
    arguments=(1, 2),
    tools=CTL,
    banner='Changing password for user "{0}" ...',
)
def change_password(call: Call) -> None:
    """Set the password of a user."""
    call.require_user(call.arguments[0])
    call.ask("users.password", name=call.arguments[0], password=_password(call, 1, DATA))


@verb("<username> <password>", arguments=(1, 2), banner='Authenticating user "{0}" ...')
def authenticate_user(call: Call) -> str:
    """Try a password; fails if it is wrong."""
    name = call.arguments[0]
    password = _password(call, 1, DATA)
    from harebell_rabbitmq_compat.node import CommandRefused

    try:
        call.node.ask("users.authenticate", name=name, password=password)
    except CommandRefused:
        raise VerbFailed(
            f"Error: failed to authenticate user \"{name}\"\nuser '{name}' - invalid credentials",
            DATA,
        ) from None
    return "Success"


@verb("<username>", tools=CTL, banner='Clearing password for user "{0}" ...')
def clear_password(call: Call) -> None:
    """Make logins with a password fail for a user."""
    name = call.arguments[0]
    call.require_user(name)
    import secrets

    # A password that is not kept: a login with a password fails from here on.
    call.ask("users.password", name=name, password=secrets.token_urlsafe(48))


@verb(
    "<username> <tag> [...]",
    arguments=(1, MANY),
    tools=CTL,
    banner=lambda call: (
        f'Setting tags for user "{call.arguments[0]}" to [{", ".join(_tags(call))}] ...'
    ),
)
def set_user_tags(call: Call) -> None:
    """Replace the tags of a user."""
    call.ask("users.tags", name=call.arguments[0], tags=_tags(call))


def _tags(call: Call) -> list[str]:
    return [tag for word in call.arguments[1:] for tag in word.split(",") if tag]


@verb("<plaintext password>", arguments=(0, 1), state=ANY, tools=CTL, banner="Will hash password")
def hash_password(call: Call) -> str:
    """Print the salted SHA-256 hash of a password, as definitions have it."""
    import base64
    import hashlib
    import secrets

    salt = secrets.token_bytes(_FIRST_SALT_BYTES)
    password = _password(call, 0, DATA)
    digest = hashlib.sha256(salt + password.encode()).digest()
    return base64.b64encode(salt + digest).decode()


# --- permissions ----------------------------------------------------------------------------------


@verb(
    "[--vhost <vhost>] <username> <conf> <write> <read>",
    tools=CTL,
    banner='Setting permissions for user "{0}" in vhost "{vhost}" ...',
)
def set_permissions(call: Call) -> None:
    """Set what a user may configure, write and read in a vhost."""
    name, configure, write, read = call.arguments
    if not call.has_vhost(call.vhost):
        raise VerbFailed(f"Virtual host {call.vhost} does not exist", UNAVAILABLE)
    if not call.has_user(name):
        raise VerbFailed(f"User {name} does not exist", NO_USER)
    call.ask(
        "permissions.set", user=name, vhost=call.vhost, configure=configure, write=write, read=read
    )


@verb(
    "<username> <conf> <write> <read>",
    tools=CTL,
    banner='Setting permissions for user "{0}" in all virtual hosts ...',
)
def set_permissions_globally(call: Call) -> None:
    """Set the permissions of a user in every vhost that there is."""
    name, configure, write, read = call.arguments
    call.require_user(name)
    for row in call.ask("vhosts.list"):
        call.ask(
            "permissions.set",
            user=name,
            vhost=row["name"],
            configure=configure,
            write=write,
            read=read,
        )


@verb(
    "[--vhost <vhost>] <username>",
    tools=CTL,
    banner='Clearing permissions for user "{0}" in vhost "{vhost}" ...',
)
def clear_permissions(call: Call) -> None:
    """Remove the permissions of a user in a vhost."""
    name = call.arguments[0]
    if not call.has_user(name):
        raise VerbFailed(f"User {name} does not exist", NO_USER)
    call.require_vhost()
    # RabbitMQ clears permissions that are not there without an error.
    if call.ask("permissions.list", user=name, vhost=call.vhost):
        call.ask("permissions.clear", user=name, vhost=call.vhost)


# --- topic permissions ----------------------------------------------------------------------------


@verb("[--no-table-headers] <username>", banner='Listing topic permissions for user "{0}" ...')
def list_user_topic_permissions(call: Call) -> Rows:
    """Print the topic permissions of a user in every vhost."""
    name = call.arguments[0]
    if not call.has_user(name):
        raise VerbFailed(f'{{:no_such_user, "{name}"}}', UNAVAILABLE)
    rows = call.ask("topic-permissions.list", user=name)
    # RabbitMQ prints no names of columns here.
    return Rows(["vhost", "exchange", "write", "read"], rows, headers=False)


@verb(
    "[--vhost <vhost>] <username> [<exchange>]",
    tools=CTL,
    banner='Clearing topic permissions for user "{0}" in vhost "{vhost}" ...',
)
def clear_topic_permissions(call: Call) -> None:
    """Remove topic permissions of a user, for one exchange or all."""
    name = call.arguments[0]
    exchange = call.arguments[1] if len(call.arguments) > 1 else None
    call.require_user(name)
    call.require_vhost()
    held = [
        row["exchange"] for row in call.ask("topic-permissions.list", user=name, vhost=call.vhost)
    ]
    if held if exchange is None else exchange in held:
        call.ask("topic-permissions.clear", user=name, vhost=call.vhost, exchange=exchange)
