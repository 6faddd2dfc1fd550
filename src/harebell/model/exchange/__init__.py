"""Exchange types, one per file, with the contract in `kind`."""

from __future__ import annotations

from harebell.model.exchange.consistent_hash import ConsistentHashExchange
from harebell.model.exchange.deduplication import DeduplicationExchange
from harebell.model.exchange.delayed import DelayedExchange
from harebell.model.exchange.direct import DirectExchange
from harebell.model.exchange.fanout import FanoutExchange
from harebell.model.exchange.federation_upstream import FederationUpstreamExchange
from harebell.model.exchange.headers import HeadersExchange
from harebell.model.exchange.kind import Exchange
from harebell.model.exchange.local_random import LocalRandomExchange
from harebell.model.exchange.modulus_hash import ModulusHashExchange
from harebell.model.exchange.random import RandomExchange
from harebell.model.exchange.recent_history import RecentHistoryExchange
from harebell.model.exchange.topic import TopicExchange

KINDS: dict[str, type[Exchange]] = {
    kind.KIND: kind
    for kind in (
        DirectExchange,
        FanoutExchange,
        TopicExchange,
        HeadersExchange,
        ConsistentHashExchange,
        LocalRandomExchange,
        ModulusHashExchange,
        RandomExchange,
        RecentHistoryExchange,
        DeduplicationExchange,
        DelayedExchange,
        FederationUpstreamExchange,
    )
}
DelayedExchange.TYPES = KINDS

__all__ = ["KINDS", "Exchange"]
