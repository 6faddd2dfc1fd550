"""Federation upstream exchange: a fanout that sends no message back to where it has been.

A RabbitMQ that federates an exchange of this broker declares an internal exchange of this type
here, binds it to the federated one, and consumes from a queue behind it. Every broker that a
message passes adds an entry to the header `x-received-from`; a message that came through the
downstream, or that passed `x-max-hops` brokers, is not sent there again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.model.exchange.fanout import FanoutExchange
from harebell.model.exchange.kind import Exchange
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue.kind import Queue

_MAX_HOPS = "x-max-hops"
_DOWNSTREAM_NAME = "x-downstream-name"
_DOWNSTREAM_VHOST = "x-downstream-vhost"
_RECEIVED_FROM = "x-received-from"


class FederationUpstreamExchange(FanoutExchange):
    """A fanout with a look at `x-received-from`."""

    KIND = "x-federation-upstream"

    def __init__(self, name: str, **declared: Any) -> None:
        super().__init__(name, **declared)
        self.by_key = False

    @classmethod
    def check_arguments(cls, thing: str, arguments: Mapping[str, Any]) -> None:
        """Ask for `x-max-hops`, as RabbitMQ does."""
        if _MAX_HOPS not in arguments:
            raise precondition(f"Argument {_MAX_HOPS} missing")
        hops = arguments[_MAX_HOPS]
        if isinstance(hops, bool) or not isinstance(hops, int):
            raise precondition(f"Argument {_MAX_HOPS} must be of type long")

    @property
    def needs_headers(self) -> bool:
        """The header `x-received-from` decides."""
        return True

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Every destination, or none."""
        passed = headers.get(_RECEIVED_FROM)
        if isinstance(passed, list) and (
            len(passed) >= self.arguments[_MAX_HOPS] or any(map(self._is_downstream, passed))
        ):
            return []
        return super().match(message, headers)

    def _is_downstream(self, entry: Any) -> bool:
        """Whether an entry of the header is the broker that this exchange sends to."""
        name = self.arguments.get(_DOWNSTREAM_NAME)
        if not isinstance(entry, dict) or name is None or entry.get("cluster-name") != name:
            return False
        # Brokers before 3.8.9 name no vhost.
        vhosts = (entry.get("vhost"), self.arguments.get(_DOWNSTREAM_VHOST))
        return None in vhosts or vhosts[0] == vhosts[1]
