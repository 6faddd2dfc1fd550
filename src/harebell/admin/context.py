"""What a command works on: the broker, its users, and those who are connected."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from harebell.auth.users import User, Users
from harebell.base.errors import HarebellError
from harebell.base.names import did_you_mean
from harebell.front.common.base_connection import BaseConnection
from harebell.front.common.connection_registry import ConnectionRegistry
from harebell.model.broker import Broker
from harebell.model.vhost import VHost
from harebell.store.definitions import SqliteDefinitions


class Refused(HarebellError):
    """A command is refused; the text is a sentence that says how to mend it."""


class Fields(msgspec.Struct, forbid_unknown_fields=True):
    """What a command without fields takes; the others have more."""


@dataclass(frozen=True, slots=True)
class AdminContext:
    """A running broker, for its commands.

    Args:
        broker: its vhosts.
        users: who may log in.
        hub: who is connected.
        definitions: where users and permissions are written down.
        clock: seconds of some clock.
        log: takes a level and a line.
    """

    broker: Broker
    users: Users
    hub: ConnectionRegistry
    definitions: SqliteDefinitions
    clock: Callable[[], float]
    log: Callable[[str, str], None]

    def user(self, name: str) -> User:
        """The user of that name.

        Raises:
            Refused: there is none.
        """
        found = self.users.get(name)
        if found is None:
            names = [user.name for user in self.users.all()]
            raise Refused(f"no user '{name}': {did_you_mean(name, names, quote=chr(39))}")
        return found

    def vhost(self, name: str) -> VHost:
        """The vhost of that name.

        Raises:
            Refused: there is none.
        """
        found = self.broker.vhosts.get(name)
        if found is None:
            raise Refused(
                f"no vhost '{name}': {did_you_mean(name, self.broker.vhosts, quote=chr(39))}"
            )
        return found

    def disconnect(self, reason: str, whom: Callable[[BaseConnection], bool]) -> int:
        """Close some connections with 320 and a reason; returns how many."""
        found = [connection for connection in self.hub.connections if whom(connection)]
        now = self.clock()
        for connection in found:
            connection.force_close(reason, now)
        return len(found)


class Command(NamedTuple):
    """One command.

    Args:
        fields: what it takes.
        run: does it; returns the answer, for JSON, or the slices of a long one.
    """

    fields: type[Fields]
    run: Callable[[AdminContext, Any], Any]


def checked_name(name: str, what: str, limit: int) -> str:
    """A name that somebody wants to give to something new.

    Raises:
        Refused: it is empty or too long.
    """
    octets = len(name.encode())
    if not octets:
        raise Refused(f"the name of a {what} must not be empty: give one")
    if octets > limit:
        raise Refused(
            f"the name of the {what} has {octets} octets, at most {limit} are allowed: shorten it"
        )
    return name
