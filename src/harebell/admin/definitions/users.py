"""Import users and their permissions."""

from __future__ import annotations

from typing import Any

from harebell.admin.accounts import (
    MAX_CHANNELS,
    WELL_KNOWN_USER,
    changing,
    save_permissions,
    save_topic_permission,
    set_user_limits,
)
from harebell.admin.context import checked_name
from harebell.admin.definitions.entries import (
    ImportTarget,
    PermissionEntry,
    TopicPermissionEntry,
    UserEntry,
    pairs,
    words,
)
from harebell.admin.limits import USER_NAME_BYTES
from harebell.auth.password_hashes import MD5, SHA256, fault_of, known_algorithm
from harebell.auth.permissions import Permissions
from harebell.auth.topics import TopicPermission
from harebell.auth.users import User
from harebell.base.slices import Slices
from harebell.model.settings.vhost_limits import MAX_CONNECTIONS
from harebell.model.vhost import VHost


def import_user(target: ImportTarget, entry: UserEntry, *, md5: bool) -> Slices[list[str]]:
    """Create or update a user; open connections stay open, and fields that are not given stay.

    Returns sentences about limits without effect.

    Args:
        target: the broker.
        entry: the user.
        md5: true if a hash without an algorithm is MD5.
    """
    limits = None if entry.limits is None else pairs(entry.limits)
    unknown = [name for name in limits or () if name not in (MAX_CONNECTIONS, MAX_CHANNELS)]
    if limits is not None:
        limits = _checked({name: limits[name] for name in limits if name not in unknown})
    algorithm = entry.hashing_algorithm or (MD5 if md5 else SHA256)
    if not known_algorithm(algorithm):
        raise ValueError(f"the hashing algorithm '{algorithm}' is unknown")
    if entry.password_hash:
        fault = fault_of(entry.password_hash, algorithm)
        if fault:
            raise ValueError(fault)
    if entry.password_hash is None and entry.password:
        # A hash says nothing about its password: RabbitMQ takes it as it is, too.
        complaint = target.users.complaint(entry.name, entry.password)
        if complaint:
            raise ValueError(complaint)
    name = checked_name(entry.name, "user", USER_NAME_BYTES)
    secrets = None
    if entry.password_hash is None and entry.password:
        secrets = yield from target.users.deriving(entry.password)
    user = target.users.get(name)
    if user is None:
        user = User(name, "", loopback_only=name == WELL_KNOWN_USER, algorithm=algorithm)
    with changing(user, target.users, target.rows):
        if entry.tags is not None:
            user.tags = words(entry.tags)
        if secrets is not None:
            target.users.give(user, secrets)
        elif entry.password_hash is not None or entry.password is not None:
            _take_hash(user, entry.password_hash or "", algorithm)
        if limits is not None:
            user.max_connections = user.max_channels = -1
            set_user_limits(user, limits)
    return [f"the limit '{name}' has no effect" for name in unknown]


def _take_hash(user: User, password_hash: str, algorithm: str) -> None:
    if (user.password_hash, user.algorithm) != (password_hash, algorithm):
        # They were derived from the previous password.
        user.verifiers, user.cram = {}, b""
    user.password_hash, user.algorithm = password_hash, algorithm


def _checked(limits: dict[str, Any]) -> dict[str, int]:
    for key, value in limits.items():
        if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 2**31:
            raise ValueError(f"the limit {key} is {value!r}, which is no number below 2^31")
    return limits


def _ends(
    target: ImportTarget, entry: PermissionEntry | TopicPermissionEntry
) -> tuple[User, VHost]:
    user = target.users.get(entry.user)
    if user is None:
        raise ValueError(f"there is no user '{entry.user}'")
    vhost = target.broker.vhosts.get(entry.vhost)
    if vhost is None:
        raise ValueError(f"there is no vhost '{entry.vhost}'")
    return user, vhost


def import_permission(target: ImportTarget, entry: PermissionEntry) -> None:
    """Set the permissions of a user in a vhost."""
    user, vhost = _ends(target, entry)
    permissions = Permissions(entry.configure, entry.write, entry.read)
    save_permissions(vhost.name, user, permissions, target.rows)
    user.permissions[vhost.name] = permissions
    vhost.router.changed()


def import_topic_permission(target: ImportTarget, entry: TopicPermissionEntry) -> None:
    """Set the topic permissions of a user for an exchange."""
    user, vhost = _ends(target, entry)
    topic = TopicPermission(entry.write, entry.read, user.name, vhost.name)
    save_topic_permission(vhost.name, user, entry.exchange, topic, target.rows)
    user.topic_permissions.setdefault(vhost.name, {})[entry.exchange] = topic
    vhost.router.changed()
