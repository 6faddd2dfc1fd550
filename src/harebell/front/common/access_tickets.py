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

from msgspec import Struct

from harebell.base.share import Shares
from harebell.front.limits import ACCESS_TICKETS

PASSIVE, ACTIVE, WRITE, READ = "passive", "active", "write", "read"
DATA, ADMIN = "/data", "/admin"
REALMS = (DATA, ADMIN)

_NUMBERS = 1 << 16
_FIRST = 2
"""RabbitMQ gives 1 to all clients, so clients present it that have never asked."""


class Ticket(Struct, frozen=True):
    """One ticket.

    Args:
        number: what the client presents, never 0 or 1.
        holder: the channel or session it was granted to.
        vhost: the name of the vhost whose realm it is for.
        realm: a path such as "/data".
        rights: PASSIVE, ACTIVE, WRITE, READ.
        exclusive: no other holder has a ticket for the realm.
        user: whose channel or session the holder is.
    """

    number: int
    holder: object
    vhost: str
    realm: str
    rights: frozenset[str]
    exclusive: bool
    user: str = ""


class RealmInUse(Exception):
    """A ticket of another holder conflicts with the requested one."""


class Tickets:
    """All tickets of one broker; each user has a share of the numbers."""

    def __init__(self) -> None:
        self._tickets: dict[int, Ticket] = {}
        # By vhost and realm, and by holder: a holder has one ticket of a realm.
        self._realms: dict[tuple[str, str], dict[object, Ticket]] = {}
        self._held: dict[object, dict[tuple[str, str], Ticket]] = {}
        self._shares = Shares("access tickets", ACCESS_TICKETS, "close channels that have some")
        self._last = 0

    def grant(
        self,
        holder: object,
        vhost: str,
        realm: str,
        rights: Iterable[str],
        *,
        exclusive: bool,
        user: str = "",
    ) -> Ticket:
        """Grant a ticket, which replaces the holder's earlier one for the realm.

        Raises:
            RealmInUse: others have tickets for the realm, and the new or an existing one is
                exclusive; or the user has too many.
        """
        place = (vhost, realm)
        here = self._realms.get(place, {})
        before = here.get(holder)
        others = len(here) - (before is not None)
        # An exclusive ticket is the only one of its realm.
        if others and (exclusive or (others == 1 and any(t.exclusive for t in here.values()))):
            raise RealmInUse(f"realm '{realm}' is in use")
        objection = "" if before is not None else self._shares.objection(user)
        if objection or len(self._tickets) >= _NUMBERS - _FIRST:
            raise RealmInUse(objection or f"all {_NUMBERS - _FIRST} tickets are given away")
        # After the checks: a request that is refused leaves the earlier ticket as it was.
        if before is not None:
            self._drop(before)
        number = self._number()
        ticket = Ticket(number, holder, vhost, realm, frozenset(rights), exclusive, user)
        self._tickets[number] = ticket
        self._realms.setdefault(place, {})[holder] = ticket
        self._held.setdefault(holder, {})[place] = ticket
        self._shares.add(user)
        return ticket

    def _number(self) -> int:
        # Round and round, so that the number of a dropped ticket is not given away at once: its
        # client may present it still.
        while True:
            self._last = max(self._last % (_NUMBERS - 1) + 1, _FIRST)
            if self._last not in self._tickets:
                return self._last

    def find(self, number: int) -> Ticket | None:
        """Find a ticket by number; None if it was never granted, or was replaced."""
        return self._tickets.get(number)

    def forget(self, holder: object) -> None:
        """Drop the tickets of a closed channel or session."""
        for ticket in list(self._held.get(holder, {}).values()):
            self._drop(ticket)

    def _drop(self, ticket: Ticket) -> None:
        place = (ticket.vhost, ticket.realm)
        del self._tickets[ticket.number]
        here, held = self._realms[place], self._held[ticket.holder]
        del here[ticket.holder], held[place]
        if not here:
            del self._realms[place]
        if not held:
            del self._held[ticket.holder]
        self._shares.remove(ticket.user)
