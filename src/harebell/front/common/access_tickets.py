"""Access tickets of versions before 0-9-1, for work with exchanges and queues.

A ticket gives rights in a realm to the channel or session that requested it. Permissions decide
what a user may do; a ticket can only remove rights: a client that presents one has announced
its actions. Clients that request no ticket present 0, which is not checked.

    realm    /data: exchanges, queues and messages     /admin: the same, for administrators
    rights   passive  query a resource      active  create and delete   write  publish     read
    one ticket per channel and realm: another request replaces it; exclusive: the only one
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

PASSIVE, ACTIVE, WRITE, READ = "passive", "active", "write", "read"
DATA, ADMIN = "/data", "/admin"
REALMS = (DATA, ADMIN)

_NUMBERS = 1 << 16
_FIRST = 2
"""RabbitMQ gives 1 to all clients, so clients present it that have never asked."""


@dataclass(frozen=True, slots=True)
class Ticket:
    """One ticket.

    Args:
        number: what the client presents, never 0 or 1.
        holder: the channel or session it was granted to.
        vhost: the name of the vhost whose realm it is for.
        realm: a path such as "/data".
        rights: PASSIVE, ACTIVE, WRITE, READ.
        exclusive: no other holder has a ticket for the realm.
    """

    number: int
    holder: object
    vhost: str
    realm: str
    rights: frozenset[str]
    exclusive: bool


class RealmInUse(Exception):
    """A ticket of another holder conflicts with the requested one."""


class Tickets:
    """All tickets of one broker."""

    def __init__(self) -> None:
        self._tickets: dict[int, Ticket] = {}
        self._last = 0

    def grant(
        self, holder: object, vhost: str, realm: str, rights: Iterable[str], *, exclusive: bool
    ) -> Ticket:
        """Grant a ticket, which replaces the holder's earlier one for the realm.

        Raises:
            RealmInUse: others have tickets for the realm, and the new or an existing one is
                exclusive.
        """
        here = [t for t in self._tickets.values() if (t.vhost, t.realm) == (vhost, realm)]
        others = [ticket for ticket in here if ticket.holder is not holder]
        if others and (exclusive or any(ticket.exclusive for ticket in others)):
            raise RealmInUse(f"realm '{realm}' is in use")
        if len(self._tickets) >= _NUMBERS - _FIRST:
            raise RealmInUse(f"all {_NUMBERS - _FIRST} tickets are given away")
        for ticket in here:
            if ticket.holder is holder:
                del self._tickets[ticket.number]
        ticket = Ticket(self._number(), holder, vhost, realm, frozenset(rights), exclusive)
        self._tickets[ticket.number] = ticket
        return ticket

    def _number(self) -> int:
        while True:
            self._last = max(self._last % (_NUMBERS - 1) + 1, _FIRST)
            if self._last not in self._tickets:
                return self._last

    def find(self, number: int) -> Ticket | None:
        """Find a ticket by number; None if it was never granted, or was replaced."""
        return self._tickets.get(number)

    def forget(self, holder: object) -> None:
        """Drop the tickets of a closed channel or session."""
        if self._tickets:
            for ticket in list(self._tickets.values()):
                if ticket.holder is holder:
                    del self._tickets[ticket.number]
