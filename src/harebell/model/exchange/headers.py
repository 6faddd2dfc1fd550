"""Headers exchange: the headers match the binding arguments (AMQP 0-9-1 3.1.3.4).

`x-match` is the mode: `all` and `any` ignore arguments that begin with "x-", `all-with-x` and
`any-with-x` ignore only `x-match` itself, and the selector of a binding. An argument without a
value matches if the header is present.

As in RabbitMQ values are compared without their types: 1, 1.0 and the timestamp 1 are equal, and so
are a string and its bytes. In arrays and tables the types are compared too.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.model.binding import Binding, frozen
from harebell.model.equivalence import shown, type_name
from harebell.model.exchange.kind import Exchange
from harebell.model.exchange.pairs import Pair, PairIndex
from harebell.model.exchange.slots import Slots
from harebell.model.queue.arguments import SELECTOR
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue

# For each x-match: whether all arguments must match, and whether "x-" names count.
_HOW = {
    "all": (True, False),
    "any": (False, False),
    "all-with-x": (True, True),
    "any-with-x": (False, True),
}


def _compared(value: Any) -> Hashable:
    """Return a value in the form in which values are compared."""
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return frozen(value)


def _pairs(arguments: Mapping[str, Any], with_x: bool) -> list[Pair]:
    """Return the arguments of a binding to match: a name, with a value or with any."""
    return [
        (name,) if wanted is None else (name, _compared(wanted))
        for name, wanted in arguments.items()
        if name not in ("x-match", SELECTOR) and (with_x or not name.startswith("x-"))
    ]


class HeadersExchange(Exchange):
    """Bindings in an index of header pairs."""

    KIND = "headers"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.by_key = False
        self._index = PairIndex()
        self._slots = Slots()
        self._names: dict[str, int] = {}

    @property
    def needs_headers(self) -> bool:
        """True: only headers are matched."""
        return True

    def check(self, binding: Binding) -> None:
        """Refuse an `x-match` that is not one of the four."""
        how = binding.arguments.get("x-match", "all")
        if not isinstance(how, str):
            raise precondition(
                f"Invalid x-match field type {type_name(how)} (value {shown(how)}); "
                "expected longstr"
            )
        if how not in _HOW:
            raise precondition(
                f'Invalid x-match field value <<"{how}">>; '
                "expected all, any, all-with-x, or any-with-x"
            )

    def added(self, binding: Binding) -> None:
        """Add the arguments of the binding to the index."""
        every, with_x = _HOW[binding.arguments.get("x-match", "all")]
        pairs = _pairs(binding.arguments, with_x)
        for pair in pairs:
            self._names[pair[0]] = self._names.get(pair[0], 0) + 1
        # Values in the form in which they are compared, so that equal ones have one number in the
        # index.
        self._index.add(pairs, every, self._slots.use(binding.leads_to))

    def removed(self, binding: Binding) -> None:
        """Remove the arguments of the binding from the index."""
        every, with_x = _HOW[binding.arguments.get("x-match", "all")]
        pairs = _pairs(binding.arguments, with_x)
        for pair in pairs:
            self._names[pair[0]] -= 1
            if not self._names[pair[0]]:
                del self._names[pair[0]]
        self._index.remove(pairs, every, self._slots.leave(binding.leads_to))

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Return the destinations whose arguments match the headers."""
        pairs: list[Pair] = []
        for name, value in headers.items():
            # Skip headers, which may be large tables, that no binding names.
            if name in self._names:
                pairs += [(name,), (name, _compared(value))]
        match = self._slots.destinations_of(self._index.match(pairs))
        self.examined = self._index.cost
        return match
