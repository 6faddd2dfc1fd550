"""Upstream exchange of a federated RabbitMQ exchange: type `x-federation-upstream`.

The downstream binds it to the federated exchange, with its own bindings, and consumes from a queue
bound to it. A message is routed to that queue unless the header `x-received-from`, the brokers that
it passed, contains the downstream or has too many entries.

    x-max-hops               how many brokers the message may have passed
    x-downstream-name        the name of the cluster of the downstream
    x-downstream-vhost       its vhost; without it any vhost of the cluster
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.model.equivalence import shown, type_name
from harebell.model.exchange.fanout import FanoutExchange
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.exchange.kind import Exchange
    from harebell.model.queue.contract import Queue

RECEIVED_FROM = "x-received-from"
_HOPS = "x-max-hops"
_NAME = "x-downstream-name"
_VHOST = "x-downstream-vhost"
_NOWHERE: tuple[Queue, ...] = ()


class FederationUpstreamExchange(FanoutExchange):
    """A fanout that skips messages the downstream has seen."""

    KIND = "x-federation-upstream"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        # A header decides as well: a route that one message took is not that of the next.
        self.by_key = False

    @classmethod
    def check_arguments(cls, resource: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a declaration without a number of hops."""
        hops = arguments.get(_HOPS)
        if isinstance(hops, bool) or not isinstance(hops, int) or hops < 0:
            given = f"'{shown(hops)}' of type '{type_name(hops)}'" if hops is not None else "none"
            raise precondition(
                f"invalid arg '{_HOPS}' for {resource}: received {given}, and a number is needed"
            )

    @property
    def needs_headers(self) -> bool:
        """True: the passed brokers are a header."""
        return True

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Return all destinations, if the message may be sent to the downstream."""
        passed = headers.get(RECEIVED_FROM)
        if isinstance(passed, list) and not self._may_go(passed):
            return _NOWHERE
        return FanoutExchange.match(self, message, headers)

    def _may_go(self, passed: list[Any]) -> bool:
        name, vhost = self.arguments.get(_NAME), self.arguments.get(_VHOST)
        if len(passed) >= self.arguments[_HOPS]:
            return False
        return not any(
            isinstance(broker, Mapping)
            and broker.get("cluster-name") == name
            and broker.get("vhost", vhost) == vhost
            for broker in passed
        )
