"""Peers of any version for a test, looked after until its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

from tests.conformance.sites import Site, Wire


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
    for peer in peers:
        peer.done()
    finish(peers)
