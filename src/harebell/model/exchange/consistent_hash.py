"""Consistent hash exchange, `x-consistent-hash`: distribute messages by weight.

It hashes the routing key, or with the argument `hash-header` a header, or with `hash-property` one
of three properties. The binding key is the weight of the destination.

Each destination has a score for each value, made of both their hashes, and the highest score wins
(rendezvous hashing, weighted by the exponential distribution). So a new destination takes over only
the values that it wins, a removed one gives up only its own, neither the order of bindings nor a
restart matters, and a weight of a million costs as much as a weight of 1.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.hashing import hashed, mixed
from harebell.base.message import Message
from harebell.model.binding import Binding
from harebell.model.editor import Editor
from harebell.model.equivalence import shown, type_name
from harebell.model.exchange.kind import Exchange, by_name
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue
    from harebell.model.queue_context import QueueContext

HEADER = "hash-header"
PROPERTY = "hash-property"
PROPERTIES = ("correlation_id", "message_id", "timestamp")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DRAWS = 2.0**64


class ConsistentHashExchange(Exchange):
    """The destinations with the seeds of their scores and their weights."""

    KIND = "x-consistent-hash"
    CHOOSES = True

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._header: str | None = self.arguments.get(HEADER)
        self._property: str | None = self.arguments.get(PROPERTY)
        self.by_key = self._header is None and self._property is None
        self._editor: Editor | None = None
        self._drawing: list[tuple[int, float, Exchange | Queue]] = []

    @classmethod
    def check_arguments(cls, resource: str, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that name nothing that can be hashed."""
        for name in (HEADER, PROPERTY):
            value = arguments.get(name)
            if value is not None and not isinstance(value, str):
                raise precondition(
                    f"invalid type '{type_name(value)}' for arg '{name}' in {resource}"
                )
        if arguments.get(PROPERTY) is None:
            return
        if arguments.get(HEADER) is not None:
            raise precondition("hash-header and hash-property are mutually exclusive")
        if arguments[PROPERTY] not in PROPERTIES:
            raise precondition(f"Unsupported property: {arguments[PROPERTY]}")

    @property
    def needs_headers(self) -> bool:
        """True if a header is hashed."""
        return self._header is not None

    def enter(self, context: QueueContext) -> None:
        """Take the editor of the vhost."""
        self._editor = context.editor

    def check(self, binding: Binding) -> None:
        """Refuse a binding key that is no weight."""
        key = binding.routing_key
        if _INTEGER.fullmatch(key) is None:
            shown = f'<<"{key}">>' if key else "<<>>"
            raise precondition(f"The binding key must be an integer: {shown}")
        if int(key) < 1:
            raise precondition("The binding key must be greater than 0")

    def added(self, binding: Binding) -> None:
        """Update the weights; of several bindings to one destination the oldest counts."""
        weights: dict[Exchange | Queue, tuple[int, float, Exchange | Queue]] = {}
        for other in self.bindings.values():
            seed = hashed("\0".join(map(str, by_name(other))))
            drawing = (seed, float(int(other.routing_key)), other.destination)
            weights.setdefault(other.destination, drawing)
        self._drawing = list(weights.values())

    def removed(self, binding: Binding) -> None:
        """Update the weights of the remaining destinations."""
        self.added(binding)

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Return the destination with the highest score for this message."""
        if len(self._drawing) < 2:
            return [destination for _, _, destination in self._drawing]
        value = hashed(self._value(message, headers))
        best, winner = math.inf, self._drawing[0][2]
        for seed, weight, destination in self._drawing:
            # A number between 0 and 1, turned into a draw of the exponential distribution with the
            # weight as its rate: a destination has the smallest draw with a probability in
            # proportion to its weight. Plus 1, as 0 has no logarithm.
            drawn = -math.log((mixed(seed ^ value) + 1) / _DRAWS) / weight
            if drawn < best:
                best, winner = drawn, destination
        return [winner]

    def _value(self, message: Message, headers: Mapping[str, Any]) -> str:
        """Return the value to hash as text; messages without it share one destination."""
        if self._header is not None:
            value = headers.get(self._header)
        elif self._property is not None:
            assert self._editor is not None, "a vhost's exchange has its editor"
            value = self._editor.property_of(message, self._property)
        else:
            return message.routing_key
        return "" if value is None else shown(value)
