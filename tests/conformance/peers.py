"""Peers of any version for a test, looked after until its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol, TypeVar

from tests.conformance.sites import Site, SocketSite, Wire


class Connected(Protocol):
    """A peer of any version."""

    def done(self) -> None:
        """Check at the end of a test that nothing came that it did not expect."""


P = TypeVar("P", bound=Connected)


def peers_of(
    site: Site,
    kind: Callable[[Site, Wire], P],
    finish: Callable[[list[P]], None] = lambda _: None,
) -> Iterator[Callable[[], P]]:
    """Yield a function that connects one more peer; at the end every peer must be done.

    Args:
        site: the broker under test.
        kind: the class of the peers.
        finish: called with all peers after the last one is done.
    """
    peers: list[P] = []

    def connect() -> P:
        peers.append(kind(site, site.connect()))
        return peers[-1]

    yield connect
    with ExitStack() as rest:
        # Each of them, also after one that is not done.
        rest.callback(finish, peers)
        for peer in reversed(peers):
            rest.callback(peer.done)


def sites_in(directory: Path) -> Iterator[Callable[[], SocketSite]]:
    """Yield a function that starts a broker on the data in a directory; at the end none runs."""
    with ExitStack() as rest:

        def start() -> SocketSite:
            site = SocketSite(directory)
            rest.callback(site.kill)
            return site

        yield start
