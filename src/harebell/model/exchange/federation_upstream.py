"""The exchange that a federating RabbitMQ declares at its upstream: type `x-federation-upstream`.

The downstream binds it to the exchange that it federates, with the bindings that it has itself, and
a queue to it, which it consumes. A message goes on to that queue unless it has been at the
downstream before, or has come too far: what it passed stands in its header `x-received-from`.

    x-max-hops               how many brokers it may have passed
    x-downstream-name        the name of the downstream's cluster
    x-downstream-vhost       and the vhost there; without it any vhost of the cluster counts
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
    """A fanout of what its downstream has not seen."""

    KIND = "x-federation-upstream"

    @classmethod
    def check_arguments(cls, thing: str, arguments: Mapping[str, Any]) -> None:
        """Refuse a declaration without a number of hops."""
        hops = arguments.get(_HOPS)
        if isinstance(hops, bool) or not isinstance(hops, int) or hops < 0:
            found = f"'{shown(hops)}' of type '{type_name(hops)}'" if hops is not None else "none"
            raise precondition(
                f"invalid arg '{_HOPS}' for {thing}: received {found}, and a number is needed"
            )

    @property
    def needs_headers(self) -> bool:
        """They say where a message has been."""
        return True

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Every destination, of a message that may go to the downstream."""
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
