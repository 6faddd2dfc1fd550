"""Consistent hash exchange, `x-consistent-hash`: messages spread over destinations by weight.

What is hashed is the routing key, or with the argument `hash-header` a header, or with
`hash-property` one of three properties. A binding's key is its destination's weight.

Each destination has a draw for each value, made of both their hashes, and the heaviest draw wins
(rendezvous hashing, weighted by the exponential distribution). So a new destination takes only what
it wins, a lost one gives only what it had, nothing depends on the order of binding or on a restart,
and a weight of a million costs as much as one of 1.
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
    """Every destination with the seed of its draws and its weight."""

    KIND = "x-consistent-hash"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self._header: str | None = self.arguments.get(HEADER)
        self._property: str | None = self.arguments.get(PROPERTY)
        self.by_key = self._header is None and self._property is None
        self._editor: Editor | None = None
        self._drawing: list[tuple[int, float, Exchange | Queue]] = []

    @classmethod
    def check_arguments(cls, thing: str, arguments: Mapping[str, Any]) -> None:
        """Refuse to hash what cannot be hashed."""
        for name in (HEADER, PROPERTY):
            value = arguments.get(name)
            if value is not None and not isinstance(value, str):
                raise precondition(f"invalid type '{type_name(value)}' for arg '{name}' in {thing}")
        if arguments.get(PROPERTY) is None:
            return
        if arguments.get(HEADER) is not None:
            raise precondition("hash-header and hash-property are mutually exclusive")
        if arguments[PROPERTY] not in PROPERTIES:
            raise precondition(f"Unsupported property: {arguments[PROPERTY]}")

    @property
    def needs_headers(self) -> bool:
        """Only when a header is hashed."""
        return self._header is not None

    def enter(self, context: QueueContext) -> None:
        """Look into messages with the vhost's editor."""
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
        """Weigh anew; of several bindings to one destination the oldest counts."""
        weights: dict[Exchange | Queue, tuple[int, float, Exchange | Queue]] = {}
        for other in self.bindings.values():
            seed = hashed("\0".join(map(str, by_name(other))))
            drawing = (seed, float(int(other.routing_key)), other.destination)
            weights.setdefault(other.destination, drawing)
        self._drawing = list(weights.values())

    def removed(self, binding: Binding) -> None:
        """Weigh those that are left."""
        self.added(binding)

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """The destination whose draw for this message is the heaviest."""
        if len(self._drawing) < 2:
            return [destination for _, _, destination in self._drawing]
        value = hashed(self._value(message, headers))
        best, winner = math.inf, self._drawing[0][2]
        for seed, weight, destination in self._drawing:
            drawn = -math.log((mixed(seed ^ value) + 1) / _DRAWS) / weight
            if drawn < best:
                best, winner = drawn, destination
        return [winner]

    def _value(self, message: Message, headers: Mapping[str, Any]) -> str:
        """What is hashed, as text; all messages without it share one destination."""
        if self._header is not None:
            value = headers.get(self._header)
        elif self._property is not None:
            assert self._editor is not None, "a vhost's exchange has its editor"
            value = self._editor.property_of(message, self._property)
        else:
            return message.routing_key
        return "" if value is None else shown(value)
