"""Headers exchange: headers have to fit the binding's arguments (AMQP 0-9-1 3.1.3.4).

`x-match` says how: `all` and `any` leave arguments that begin with "x-" out, `all-with-x` and
`any-with-x` leave out only `x-match` itself. An argument without a value asks only for the header's
presence.

As in RabbitMQ a value counts and its type does not: 1, 1.0 and the first second of 1970 are equal,
and so are a text and its octets. What stands in an array or a table counts with its type.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.model.binding import Binding, frozen
from harebell.model.equivalence import shown, type_name
from harebell.model.exchange.kind import Exchange
from harebell.model.resource import precondition

if TYPE_CHECKING:
    from harebell.model.queue.kind import Queue

_HOW: dict[str, tuple[Callable[[Iterable[bool]], bool], bool]] = {
    "all": (all, False),
    "any": (any, False),
    "all-with-x": (all, True),
    "any-with-x": (any, True),
}


def _compared(value: Any) -> Hashable:
    """What of a header or an argument is compared."""
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    return frozen(value)


def fits(arguments: Mapping[str, Any], headers: Mapping[str, Any]) -> bool:
    """Whether headers satisfy a binding's arguments."""
    combine, with_x = _HOW[arguments.get("x-match", "all")]
    return combine(
        name in headers and (wanted is None or _compared(headers[name]) == _compared(wanted))
        for name, wanted in arguments.items()
        if name != "x-match" and (with_x or not name.startswith("x-"))
    )


class HeadersExchange(Exchange):
    """Every binding is asked."""

    KIND = "headers"

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, **options)
        self.by_key = False

    @property
    def needs_headers(self) -> bool:
        """The headers are all that counts."""
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
        """Nothing to keep beside the binding."""

    def removed(self, binding: Binding) -> None:
        """Nothing to forget beside the binding."""

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Destinations whose arguments the headers fit."""
        return [
            binding.destination
            for binding in self.bindings.values()
            if fits(binding.arguments, headers)
        ]
