"""The interfaces that channels and sessions of all versions share.

Permissions, events, the firehose, listings and timeouts use only these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from harebell.auth.users import User
    from harebell.base.counters import Counters
    from harebell.base.sequence import Sequence
    from harebell.front.common.base_connection import BaseConnection
    from harebell.front.common.channel_details import ChannelDetails
    from harebell.model.router import Router
    from harebell.model.vhost import VHost


class Principal(Protocol):
    """The user and the vhost that permissions are checked for."""

    @property
    def vhost(self) -> VHost:
        """The vhost of the queues and exchanges."""

    @property
    def user(self) -> User:
        """The user whose permissions are checked."""


class ChannelLike(Protocol):
    """A channel or a session, as far as permissions and events need it; a `Principal`, too."""

    @property
    def vhost(self) -> VHost:
        """The vhost of the queues and exchanges."""

    @property
    def user(self) -> User:
        """The user whose permissions are checked."""

    @property
    def counters(self) -> Counters:
        """The counters of its messages."""

    details: ChannelDetails | None
    """The counters by exchange and by queue; None until something is counted."""

    @property
    def number(self) -> int:
        """Its number in the connection."""

    @property
    def connection(self) -> BaseConnection:
        """The connection it belongs to."""

    @property
    def router(self) -> Router:
        """The router of the vhost."""


class DeliveryHolder(ChannelLike, Protocol):
    """A channel or a session that holds deliveries; the tags of a session number its transfers."""

    @property
    def unacked(self) -> Sequence:
        """Deliveries not acknowledged yet, by tag."""

    @property
    def next_tag(self) -> int:
        """The tag of the next delivery."""

    def overdue(self, entry: Any, text: str) -> None:
        """End the channel or session because of a delivery."""


class NumberedConfirms(Protocol):
    """The confirms of a channel, as listings show them."""

    @property
    def taken(self) -> int:
        """The number of the last publish."""

    @property
    def sent(self) -> int:
        """The number of the last publish that was confirmed."""

    def count_details(self) -> None:
        """Count for each exchange the publishes that were confirmed since the last call."""


class PendingWork(Protocol):
    """A transaction of a channel, as listings show it."""

    def pending(self) -> tuple[int, int]:
        """Return the numbers of publishes and of settled deliveries."""


class AnyChannel(DeliveryHolder, Protocol):
    """A channel or a session, as `BaseConnection.channels` has it and listings show it."""

    counters: Counters

    @property
    def consumers(self) -> Mapping[str, Any] | None:
        """The consumers that were started on it, by tag."""

    @property
    def confirms(self) -> NumberedConfirms | None:
        """Set by confirm.select."""

    @property
    def transaction(self) -> PendingWork | None:
        """The current transaction."""

    @property
    def prefetch(self) -> int:
        """The limit for consumers started from now on."""

    @property
    def prefetch_global(self) -> int:
        """The limit for the channel as a whole."""

    def serve(self) -> int:
        """Serve the consumers."""
