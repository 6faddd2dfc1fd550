"""Entries of a definitions document: one class per section, in RabbitMQ's format.

Some versions of RabbitMQ write an Erlang property list as a list of pairs, `[["max-length", 5]]`,
instead of an object. Both are accepted. Unknown members are ignored.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from harebell.auth.users import Users
from harebell.base.errors import HarebellError
from harebell.base.ports import Definitions
from harebell.model.broker import Broker

E = TypeVar("E", bound=msgspec.Struct)


class DefinitionsError(HarebellError):
    """The definitions are invalid; the text is a sentence that names the entry."""


@dataclass(frozen=True, slots=True)
class ImportTarget:
    """The broker that definitions are imported into or exported from.

    Args:
        broker: the vhosts, with what is declared in them.
        users: the accounts and their permissions.
        rows: the store of users and permissions.
    """

    broker: Broker
    users: Users
    rows: Definitions


class UserEntry(msgspec.Struct, kw_only=True):
    """A user, with a password hash or a plain-text password; None is not given."""

    name: str
    password_hash: str | None = None
    password: str | None = None
    hashing_algorithm: str | None = None
    tags: str | list[str] | None = None
    limits: dict[str, Any] | list[Any] | None = None


class VHostEntry(msgspec.Struct, kw_only=True):
    """A vhost; newer versions of RabbitMQ repeat some members in `metadata`. None is not given."""

    name: str
    description: str | None = None
    tags: str | list[str] | None = None
    default_queue_type: str | None = None
    metadata: dict[str, Any] | list[Any] = {}
    limits: dict[str, Any] | list[Any] = {}
    tracing: bool | None = None
    durability: str | None = None


class PermissionEntry(msgspec.Struct, kw_only=True):
    """The permissions of a user in a vhost."""

    user: str
    vhost: str
    configure: str
    write: str
    read: str


class TopicPermissionEntry(msgspec.Struct, kw_only=True):
    """The topic permissions of a user for an exchange."""

    user: str
    vhost: str
    exchange: str
    write: str
    read: str


class ParameterEntry(msgspec.Struct, kw_only=True):
    """A parameter of a vhost; operator policies are parameters, too."""

    component: str
    name: str
    value: Any
    vhost: str


class GlobalParameterEntry(msgspec.Struct, kw_only=True):
    """A global parameter."""

    name: str
    value: Any


class PolicyEntry(msgspec.Struct, kw_only=True):
    """A policy."""

    name: str
    vhost: str
    pattern: str
    definition: dict[str, Any] | list[Any]
    apply_to: str = msgspec.field(name="apply-to", default="all")
    priority: int = 0


class QueueEntry(msgspec.Struct, kw_only=True):
    """A queue."""

    name: str
    vhost: str
    durable: bool = True
    auto_delete: bool = False
    arguments: dict[str, Any] | list[Any] = {}
    type: str = ""


class ExchangeEntry(msgspec.Struct, kw_only=True):
    """An exchange."""

    name: str
    vhost: str
    type: str
    durable: bool = True
    auto_delete: bool = False
    internal: bool = False
    arguments: dict[str, Any] | list[Any] = {}


class BindingEntry(msgspec.Struct, kw_only=True):
    """A binding."""

    source: str
    vhost: str
    destination: str
    destination_type: str
    routing_key: str
    arguments: dict[str, Any] | list[Any] = {}


def pairs(value: dict[str, Any] | list[Any]) -> dict[str, Any]:
    """Return an object, also from a list of pairs.

    Raises:
        ValueError: the list is not a list of pairs.
    """
    if isinstance(value, dict):
        return value
    try:
        converted = msgspec.convert(value, list[tuple[str, Any]])
    except msgspec.ValidationError:
        raise ValueError(f"{value!r} is no object") from None
    return dict(converted)


def words(value: str | list[str] | None) -> tuple[str, ...]:
    """Return tags from a list or from a text with commas."""
    if value is None:
        return ()
    split = value.split(",") if isinstance(value, str) else value
    return tuple(dict.fromkeys(tag.strip() for tag in split if tag.strip()))


def entries(
    document: dict[str, Any], section: str, kind: type[E], vhost: str | None
) -> Iterator[E]:
    """Parse and yield the entries of one section.

    Args:
        document: the definitions.
        section: the name of the section.
        kind: the class of its entries.
        vhost: the vhost to set in all entries; None if they name their vhosts.

    Raises:
        DefinitionsError: a required member is missing or has a wrong type.
    """
    given = document.get(section, [])
    if not isinstance(given, list):
        raise DefinitionsError(f"{section} is no list")
    for number, entry in enumerate(given):
        if vhost is not None and isinstance(entry, dict):
            entry = {**entry, "vhost": vhost}  # a copy, so that the document is not changed
        try:
            converted = msgspec.convert(entry, kind)
        except msgspec.ValidationError as error:
            which = f"{section}[{number}] {title(entry)}".rstrip()
            raise DefinitionsError(f"{which}: {error}") from None
        yield converted


def title(entry: Any) -> str:
    """Return the name of an entry for error texts."""
    if isinstance(entry, msgspec.Struct):
        entry = msgspec.to_builtins(entry)
    if not isinstance(entry, dict):
        return repr(entry)[:80]
    named = ("component", "name", "user", "exchange", "source", "destination", "routing_key")
    parts = [f"{key} '{entry[key]}'" for key in named if key in entry]
    if "vhost" in entry:
        parts.append(f"in vhost '{entry['vhost']}'")
    return " ".join(parts)
