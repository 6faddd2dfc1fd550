"""Exchange types, one per file, with the contract in `kind`.

The file of a type is imported with the first exchange of it: most brokers use few of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module

from harebell.model.exchange.kind import Exchange

DELAYED = "x-delayed-message"
DELAYED_TYPE = "x-delayed-type"
"""The argument of a delaying exchange with the type that it routes like."""


class _Kinds(Mapping[str, type[Exchange]]):
    """The classes of exchanges by their types.

    Args:
        classes: for each type its file, and the class in it.
    """

    def __init__(self, classes: Mapping[str, tuple[str, str]]) -> None:
        self._classes = classes

    def __getitem__(self, kind: str) -> type[Exchange]:
        file, name = self._classes[kind]
        found: type[Exchange] = getattr(import_module(f"{__name__}.{file}"), name)
        return found

    def __contains__(self, kind: object) -> bool:
        return kind in self._classes

    def __iter__(self) -> Iterator[str]:
        return iter(self._classes)

    def __len__(self) -> int:
        return len(self._classes)


KINDS = _Kinds(
    {
        "direct": ("direct", "DirectExchange"),
        "fanout": ("fanout", "FanoutExchange"),
        "topic": ("topic", "TopicExchange"),
        "headers": ("headers", "HeadersExchange"),
        "x-consistent-hash": ("consistent_hash", "ConsistentHashExchange"),
        "x-local-random": ("local_random", "LocalRandomExchange"),
        "x-modulus-hash": ("modulus_hash", "ModulusHashExchange"),
        "x-random": ("random", "RandomExchange"),
        "x-recent-history": ("recent_history", "RecentHistoryExchange"),
        "x-message-deduplication": ("deduplication", "DeduplicationExchange"),
        DELAYED: ("delayed", "DelayedExchange"),
        "x-federation-upstream": ("federation_upstream", "FederationUpstreamExchange"),
    }
)

__all__ = ["DELAYED", "DELAYED_TYPE", "KINDS", "Exchange"]
