"""Users over a restart: from their definitions, or the default user when there are none."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from harebell.auth.password_hashes import is_slow
from harebell.auth.permissions import ACTIONS, PatternError, Permissions
from harebell.auth.topics import TOPIC_ACTIONS, TopicPermission
from harebell.auth.users import User, Users
from harebell.auth.verifiers import Verifier, read, written
from harebell.base.errors import StoreError
from harebell.base.hash_names import SHA256
from harebell.base.ports import Definitions
from harebell.model.broker import DEFAULT_VHOST
from harebell.model.settings.vhost_limits import MAX_CONNECTIONS

if TYPE_CHECKING:
    from harebell.admin.context import AdminContext
    from harebell.base.slices import Slices

WELL_KNOWN_USER = "guest"
"""The default user, whose password is the same; documentation and clients know both."""
MAX_CHANNELS = "max-channels"
_NO_LIMIT = -1


def load_users(users: Users, definitions: Definitions) -> None:
    """Bring the users back. What CRAM-MD5 needed of passwords goes when it is not offered.

    Args:
        users: filled here.
        definitions: have the users and their permissions.

    Raises:
        StoreError: the definitions are damaged.
    """
    given_up: list[User] = []
    for (name,), fields in definitions.load("user"):
        user = User(name, "")
        set_user_fields(user, fields)
        if user.cram and not users.cram:
            given_up.append(user)
            user.cram = b""
        users.put(user)
    for (vhost, name), fields in definitions.load("permission"):
        owner = users.get(name)
        if owner is not None:
            owner.permissions[vhost] = _permissions(vhost, name, fields)
    for (vhost, name, exchange), fields in definitions.load("topic_permission"):
        owner = users.get(name)
        if owner is not None:
            topics = owner.topic_permissions.setdefault(vhost, {})
            topics[exchange] = _topic_permission(vhost, name, exchange, fields)
    for user in given_up:
        save_user(user, definitions)


def make_default_user(
    users: Users,
    definitions: Definitions,
    name: str,
    password: str,
    *,
    vhost: str = DEFAULT_VHOST,
    tags: tuple[str, ...] = ("administrator",),
    permissions: Permissions | None = None,
) -> None:
    """Make the default user when there is no user at all.

    Args:
        users: gets the user.
        definitions: get the user, too.
        name: of the user.
        password: of the user.
        vhost: where the user has permissions.
        tags: of the user.
        permissions: the permissions there; None for all.
    """
    if not users.all():
        # A password that everybody knows is no secret, which a slow hash would keep: it would cost
        # the first start, and the first login after each, 60 ms and 16 MiB.
        known = name == password == WELL_KNOWN_USER
        made = users.add(
            name,
            password,
            loopback_only=name == WELL_KNOWN_USER,
            tags=tags,
            vhosts=(vhost,),
            algorithm=SHA256 if known and is_slow(users.algorithm) else "",
        )
        if permissions is not None:
            made.permissions[vhost] = permissions
        save_user(made, definitions)


def _tags(text: str) -> tuple[str, ...]:
    return tuple(tag for tag in text.split(",") if tag)


def _verifiers(name: str, text: str) -> tuple[dict[str, Verifier], bytes]:
    try:
        return read(text)
    except ValueError as error:
        raise StoreError(f"the verifiers of user '{name}' are damaged: {error}") from None


def _permissions(vhost: str, name: str, fields: Mapping[str, str]) -> Permissions:
    try:
        return Permissions(fields["configure"], fields["write"], fields["read"], stored=True)
    except PatternError as error:
        raise StoreError(
            f"the permissions of user '{name}' in vhost '{vhost}' are damaged: {error}"
        ) from None


def _topic_permission(
    vhost: str, name: str, exchange: str, fields: Mapping[str, str]
) -> TopicPermission:
    try:
        return TopicPermission(fields["write"], fields["read"], name, vhost, stored=True)
    except PatternError as error:
        raise StoreError(
            f"the topic permissions of user '{name}' for exchange '{exchange}' in vhost '{vhost}' "
            f"are damaged: {error}"
        ) from None


def user_fields(user: User) -> dict[str, Any]:
    """Return the stored fields of a user without name and permissions; the password as its hash."""
    return {
        "password_hash": user.password_hash,
        "tags": ",".join(user.tags),
        "loopback_only": user.loopback_only,
        "hashing_algorithm": user.algorithm,
        "max_connections": user.max_connections,
        "max_channels": user.max_channels,
        "verifiers": written(user.verifiers, user.cram),
    }


def set_user_fields(user: User, fields: Mapping[str, Any]) -> None:
    """Give a user what `user_fields` has returned for another process's copy.

    Raises:
        StoreError: the fields are damaged.
    """
    user.verifiers, user.cram = _verifiers(user.name, fields["verifiers"])
    if user.password_hash != fields["password_hash"]:
        user.proof = None
    user.password_hash = fields["password_hash"]
    user.algorithm = fields["hashing_algorithm"]
    user.loopback_only = fields["loopback_only"]
    user.tags = _tags(fields["tags"])
    user.max_connections = fields["max_connections"]
    user.max_channels = fields["max_channels"]


def save_user(user: User, definitions: Definitions) -> None:
    """Write a user down, the password as its hash only."""
    definitions.put("user", (user.name,), user_fields(user))
    for vhost, permissions in sorted(user.permissions.items()):
        save_permissions(vhost, user, permissions, definitions)
    for vhost, topics in sorted(user.topic_permissions.items()):
        for exchange, topic in sorted(topics.items()):
            save_topic_permission(vhost, user, exchange, topic, definitions)


@contextmanager
def changing(user: User, users: Users, definitions: Definitions) -> Iterator[None]:
    """Change a user in a block, or make one: what cannot be stored is not changed.

    Args:
        user: known or new; not its permissions, which are changed one by one.
        users: where it is put.
        definitions: where it is stored.
    """
    before = [(name, getattr(user, name)) for name in User.__slots__]
    exists = users.get(user.name) is user
    try:
        with definitions.whole():
            yield
            # Before it is stored: this says from where the user may log in.
            users.put(user)
            save_user(user, definitions)
    except BaseException:
        for name, value in before:
            setattr(user, name, value)
        if not exists:
            users.remove(user.name)
        raise


def remove_users(context: AdminContext, users: Iterable[User]) -> Slices[int]:
    """Remove users with all permissions, and then close their connections, in slices.

    Returns:
        How many connections there were.
    """
    gone = list(users)
    for user in gone:
        _remove(context, user)
    closed = 0
    for user in gone:
        closed += yield from _disconnect(context, user)
        yield
    return closed


def _disconnect(context: AdminContext, user: User) -> Slices[int]:
    return context.disconnect(
        f"user '{user.name}' is deleted", lambda connection: connection.user is user
    )


def _remove(context: AdminContext, user: User) -> None:
    definitions = context.definitions
    with definitions.whole():
        definitions.drop("user", (user.name,))
        for vhost in user.permissions:
            definitions.drop("permission", (vhost, user.name))
        for vhost, topics in user.topic_permissions.items():
            for exchange in topics:
                definitions.drop("topic_permission", (vhost, user.name, exchange))
    context.users.remove(user.name)
    context.log("info", f"Deleted user '{user.name}'")
    context.broker.events.note("user.deleted", {"name": user.name})


def save_permissions(
    vhost: str, user: User, permissions: Permissions, definitions: Definitions
) -> None:
    """Write down what a user may do in one vhost."""
    fields = {action: getattr(permissions, action) for action in ACTIONS}
    definitions.put("permission", (vhost, user.name), fields)


def save_topic_permission(
    vhost: str, user: User, exchange: str, topic: TopicPermission, definitions: Definitions
) -> None:
    """Write down what a user may do with the topics of one exchange."""
    fields = {action: getattr(topic, action) for action in TOPIC_ACTIONS}
    definitions.put("topic_permission", (vhost, user.name, exchange), fields)


def user_limits(user: User) -> dict[str, int]:
    """The limits that a user has, by their names."""
    limits = {MAX_CONNECTIONS: user.max_connections, MAX_CHANNELS: user.max_channels}
    return {key: value for key, value in limits.items() if value >= 0}


def set_user_limits(user: User, changes: dict[str, int]) -> None:
    """Set limits of a user by their names; a negative number removes one."""
    user.max_connections = max(changes.get(MAX_CONNECTIONS, user.max_connections), _NO_LIMIT)
    user.max_channels = max(changes.get(MAX_CHANNELS, user.max_channels), _NO_LIMIT)
