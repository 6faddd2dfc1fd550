"""Find objects of all kinds by a part of their names."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappush, heapreplace

from harebell.admin.catalog import OVERVIEW
from harebell.admin.command import MANAGEMENT, Row
from harebell.admin.commands.connections import visible_connections
from harebell.admin.context import AdminContext, CommandRefused
from harebell.admin.limits import SEARCH_NAMES, SEARCH_ROWS, SEARCH_SLICE_NAMES, SEARCH_TEXT_BYTES
from harebell.admin.place import EACH_ONCE
from harebell.admin.rows.connections import client_name
from harebell.base.slices import Slices

_Hit = tuple[str, str, str, str, str]
"""Its kind, vhost and name, what else is said of it, and the text that is searched."""
_ADMINISTRATOR = "administrator"


@OVERVIEW.command("GET /api/search", tag=MANAGEMENT, merge=EACH_ONCE)
def search(context: AdminContext, text: str) -> Slices[list[Row]]:
    """Find what the user may see by a part of its name: of each kind the best matches.

    Kinds are queues, exchanges, policies, connections by the client's name, users and routing keys.
    """
    if len(text.encode()) > SEARCH_TEXT_BYTES:
        raise CommandRefused(f"text has more than {SEARCH_TEXT_BYTES} bytes: shorten it")
    return _found(context, text.lower())


def _found(context: AdminContext, part: str) -> Slices[list[Row]]:
    best: dict[str, list[tuple[int, int, _Hit]]] = {}
    for number, hit in enumerate(_names(context)):
        if number % SEARCH_SLICE_NAMES == SEARCH_SLICE_NAMES - 1:
            yield
        if number == SEARCH_NAMES:
            break
        place = hit[4].lower().find(part)
        if place >= 0:
            _keep(best.setdefault(hit[0], []), (-_distance(hit[4], part, place), -number, hit))
    return [
        {"kind": kind, "vhost": vhost, "name": name, "detail": detail}
        for hits in best.values()
        for _, _, (kind, vhost, name, detail, _) in sorted(hits, reverse=True)
    ]


def _distance(name: str, part: str, place: int) -> int:
    """Return 0 for the whole name, 1 for its start, and 2 for another part."""
    if place:
        return 2
    return 0 if len(name) == len(part) else 1


def _keep(hits: list[tuple[int, int, _Hit]], hit: tuple[int, int, _Hit]) -> None:
    """Keep the best matches, the worst one first."""
    if len(hits) < SEARCH_ROWS:
        heappush(hits, hit)
    elif hit[:2] > hits[0][:2]:
        heapreplace(hits, hit)


def _names(context: AdminContext) -> Iterator[_Hit]:
    """Yield everything that the actor may see elsewhere; the longest lists come last."""
    actor = context.actor
    if actor is None or _ADMINISTRATOR in actor.tags:
        for user in context.users.by_name():
            yield "user", "", user.name, " ".join(user.tags), user.name
    for connection in visible_connections(context, None):
        name = connection.peer.connection_name
        called = client_name(connection)
        yield "connection", "", name, called, called or name
    vhosts = context.vhosts(None)
    for vhost in vhosts:
        for policy in list(vhost.policies.policies):
            yield "policy", vhost.name, policy, "", policy
        for exchange in list(vhost.exchanges.values()):
            yield "exchange", vhost.name, exchange.name, exchange.KIND, exchange.name
    for vhost in vhosts:
        for queue in list(vhost.queues.values()):
            if not queue.deleted:
                yield "queue", vhost.name, queue.name, "", queue.name
    for vhost in vhosts:
        for each in vhost.bindings():
            if key := each.routing_key:
                end = f"{key}, to {each.destination.name}"
                yield "routing key", vhost.name, each.source.name, end, key
