"""Where a peer's wish comes from: a channel, or a session, of whatever version.

What every version needs (permissions, events, the firehose) knows no more than this of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from harebell.front.common.base_connection import Link
    from harebell.model.router import Router
    from harebell.model.vhost import VHost


class Place(Protocol):
    """A channel or a session."""

    @property
    def number(self) -> int:
        """Its number in the connection."""

    @property
    def connection(self) -> Link:
        """The connection it belongs to."""

    @property
    def vhost(self) -> VHost:
        """Where its queues and exchanges are."""

    @property
    def router(self) -> Router:
        """Of the vhost."""
