"""The contract of an exchange type.

A type keeps its bindings in an index of its own and returns the destinations of a message. The
router does the rest: alternate exchanges, cycles, each queue once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from harebell.base.c_types import C, Py, i64
from harebell.base.message import Message
from harebell.model.binding import Binding

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue


ALTERNATE = "alternate-exchange"
"""Argument of an exchange: its alternate exchange."""
ALTERNATE_ONCE = "x-alternate-once"
"""Argument of exchanges declared by 0-10: drop what the alternate exchange cannot route."""


SEQUENCE = "qpid.msg_sequence"
"""Argument of an exchange that numbers its messages, and the header with the number, see `tap`."""
KEEPS_VALUES = "qpid.ive"
"""Argument of an exchange that keeps the newest message of each routing key, see `tap`."""


class Rehearsal(NamedTuple):
    """What an exchange would do with a message.

    Args:
        destinations: where it would go; a destination may occur twice.
        note: the other effects of its type, as a sentence; "" if it has none.
        one_of: whether only one of the destinations is chosen.
    """

    destinations: list[Any]
    note: str = ""
    one_of: bool = False


class Exchange:
    """An exchange and its bindings.

    Args:
        name: its name, "" for the default exchange.
        durable: whether it survives a restart.
        auto_delete: whether it is deleted with its last binding.
        internal: whether publishers are refused.
        arguments: as declared.

    Attributes:
        bindings: the bindings whose source it is; each is its own key.
        bound: the bindings whose destination it is; None until there is one.
        default: whether it is the default exchange, whose bindings are the queues' names.
        by_key: whether the destinations depend on the routing key alone, so that they can be
            cached.
        routes: cached destinations by routing key, valid in epoch `routes_epoch` of the router.
        older_routes: those that were cached before; one that is used again is cached again.
        identity: the identity of its log, if the type has one; the vhost or a restart sets it.
        published: messages that were published to it.
        routed: copies of them that queues got.
        seen: the sum of both at the last call of `moved`.
        examined: cost of the last match, if known: bindings and nodes examined.
        tap: what sees the messages that come to it, see `tap`; None for most.
        gates: how many of its bindings have a selector, see `gate`.
        special: whether it has a tap or gates.
    """

    KIND = ""
    CHOOSES = False
    """Whether `chooses` is true of the type."""
    KEEPS = False
    """Whether the type has a log with an identity of its own."""

    def __init__(
        self,
        name: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.durable = durable
        self.auto_delete = auto_delete
        self.internal = internal
        self.arguments = arguments or {}
        alternate = self.arguments.get(ALTERNATE)
        self.alternate = alternate if isinstance(alternate, str) else None
        self.alternate_once = self.arguments.get(ALTERNATE_ONCE) is True
        self.bindings: dict[Binding, Binding] = {}
        self.bound: Py[dict[Binding, Binding] | None] = None
        self.by_key = True
        self.default = name == ""
        self.routes: dict[str, tuple[Queue, ...]] = {}
        self.older_routes: dict[str, tuple[Queue, ...]] = {}
        self.routes_epoch: i64 = -1
        self.published: i64 = 0
        self.routed: i64 = 0
        self.seen: i64 = 0
        self.identity = ""
        self.examined: i64 = 0
        # Its type is in a module that imports this one.
        self.tap: Py[Any] = None
        self.gates: i64 = 0
        self.special = False

    @property
    def keeps_values(self) -> bool:
        """Whether it keeps the newest message of each routing key."""
        return not self.KEEPS and flag(self.arguments, KEEPS_VALUES)

    @property
    def keeps(self) -> bool:
        """Whether it keeps messages or their values when they are published."""
        return self.KEEPS or self.keeps_values

    @property
    def has_log(self) -> bool:
        """Whether it has a log with an identity of its own."""
        return self.keeps or flag(self.arguments, SEQUENCE)

    def moved(self) -> bool:
        """True if a message was published or routed since the last call."""
        total = self.published + self.routed
        if total == self.seen:
            return False
        self.seen = total
        return True

    @classmethod
    def check_arguments(cls, resource: str, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that this type cannot use; `resource` names the exchange."""

    @property
    def chooses(self) -> bool:
        """Whether it chooses one of its bindings for a message, instead of using all that match."""
        return self.CHOOSES

    def enter(self, context: Any) -> None:
        """Add the exchange to a vhost, and use the parts of the vhost that it needs."""

    def leave(self) -> None:
        """Delete what the exchange has stored: it was deleted."""

    def greet(self, binding: Binding) -> None:
        """Note a new binding; not called for bindings restored after a restart."""

    def bind(self, binding: Binding) -> bool:
        """Add a binding; False if there is an equal one."""
        if binding in self.bindings:
            return False
        self.check(binding)
        self.bindings[binding] = binding
        self.added(binding)
        if binding.leads_to is not binding.destination:
            self.gates += 1
            self.special = True
        return True

    def unbind(self, equal: Binding) -> Binding | None:
        """Remove the binding that is equal to the given one; None if there is none."""
        binding = self.bindings.pop(equal, None)
        if binding is not None:
            self.removed(binding)
            if binding.leads_to is not binding.destination:
                self.gates -= 1
                self.special = self.gates > 0 or self.tap is not None
        return binding

    def check(self, binding: Binding) -> None:
        """Refuse a binding whose key or arguments this type cannot use."""

    def added(self, binding: Binding) -> None:
        """Add a binding to the index."""
        raise NotImplementedError

    def removed(self, binding: Binding) -> None:
        """Remove a binding from the index."""
        raise NotImplementedError

    def match(self, message: Message, headers: Mapping[str, Any]) -> C[Iterable[Exchange | Queue]]:
        """Return what the bindings that match lead to; a destination may occur twice.

        Args:
            message: what is routed.
            headers: its decoded headers; empty for types with `needs_headers` False.
        """
        raise NotImplementedError

    def rehearse(self, message: Message, headers: Mapping[str, Any]) -> Rehearsal:
        """Return what `match` would, without any effect.

        Types whose `match` keeps, counts or draws something have their own.
        """
        return Rehearsal(list(self.match(message, headers)))

    def alone(self, binding: Binding) -> Exchange:
        """Return an exchange of this type, in no vhost, that has only the given binding."""
        probe = type(self)(self.name, arguments=self.arguments)
        probe.bindings[binding] = binding
        probe.added(binding)
        return probe

    @property
    def needs_headers(self) -> bool:
        """Whether `match` uses the headers, so that they have to be decoded."""
        return False

    @property
    def each_key(self) -> bool:
        """Whether a message with several routing keys is matched by each of them, or once."""
        return self.by_key


def flag(arguments: Mapping[str, Any], name: str) -> bool:
    """True if a flag of Qpid is set: its tools send 1, "1" or true."""
    return arguments.get(name) not in (None, False, 0, "0", "false", "")


def by_name(binding: Binding) -> tuple[bool, str]:
    """Return the sort key of a binding by its destination: queues first, then by name."""
    return (isinstance(binding.destination, Exchange), binding.destination.name)
