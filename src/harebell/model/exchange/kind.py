"""The contract of an exchange kind.

A kind keeps its bindings in whatever shape it matches fastest and says which of their destinations
a message goes to. Everything else (alternate exchanges, cycles, each queue once) is the vhost's
router's.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.message import Message
from harebell.model.binding import Binding

if TYPE_CHECKING:
    from harebell.model.queue.contract import Queue


ALTERNATE = "alternate-exchange"
"""Argument of an exchange: where messages go that it has no way for."""
ALTERNATE_ONCE = "x-alternate-once"
"""Argument of an exchange that a 0-10 peer declared: what its alternate cannot route is dropped."""


class Exchange:
    """An exchange and its bindings.

    Args:
        name: its name, "" for the default exchange.
        durable: whether it survives a restart.
        auto_delete: whether it goes with its last binding.
        internal: whether publishers are refused.
        arguments: as declared.

    Attributes:
        bindings: the bindings it is the source of, by identity.
        bound: the bindings it is the destination of; None until there is one.
        default: whether it is the default exchange, whose bindings are the queues' names.
        by_key: whether the destinations depend on the routing key alone, so that they can be
        remembered. routes: destinations by routing key, as the router found them in epoch
        `routes_epoch`.
        identity: of its log, if its kind keeps one; the vhost or a restart sets it.
        looked_at: what the last match cost where that is known: bindings and nodes looked at.
    """

    KIND = ""
    KEEPS = False
    """Whether it keeps messages or what it knows of them, in a log with an identity of its own."""

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
        self.bindings: dict[Hashable, Binding] = {}
        self.bound: dict[Hashable, Binding] | None = None
        self.by_key = True
        self.default = name == ""
        self.routes: dict[str, tuple[Queue, ...]] = {}
        self.routes_epoch = -1
        self.published = 0
        self.identity = ""
        self.looked_at = 0

    @classmethod
    def check_arguments(cls, thing: str, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments of a declaration that this kind cannot use; `thing` names it."""

    def enter(self, context: Any) -> None:
        """Become part of a vhost, which lends what the kinds that look, choose or keep need."""

    def leave(self) -> None:
        """The exchange was deleted: what it kept goes."""

    def greet(self, binding: Binding) -> None:
        """A binding was made just now, and not brought back by a restart."""

    def bind(self, binding: Binding) -> bool:
        """Add a binding; False when there is an equal one."""
        if binding.identity in self.bindings:
            return False
        self.check(binding)
        self.bindings[binding.identity] = binding
        self.added(binding)
        return True

    def unbind(self, identity: Hashable) -> Binding | None:
        """Remove a binding; None when there is no such."""
        binding = self.bindings.pop(identity, None)
        if binding is not None:
            self.removed(binding)
        return binding

    def check(self, binding: Binding) -> None:
        """Refuse a binding whose key or arguments this kind cannot use."""

    def added(self, binding: Binding) -> None:
        """A binding was added: bring the kind's own shape up to date."""
        raise NotImplementedError

    def removed(self, binding: Binding) -> None:
        """A binding was removed: bring the kind's own shape up to date."""
        raise NotImplementedError

    def match(self, message: Message, headers: Mapping[str, Any]) -> Iterable[Exchange | Queue]:
        """Destinations of a message; may repeat one.

        Args:
            message: what is routed.
            headers: its decoded headers; empty for kinds with `needs_headers` False.
        """
        raise NotImplementedError

    @property
    def needs_headers(self) -> bool:
        """Whether `match` looks at the headers, so that they have to be decoded."""
        return False

    @property
    def each_key(self) -> bool:
        """Whether a message with several routing keys is matched by each of them, or just once."""
        return self.by_key


def by_name(binding: Binding) -> tuple[bool, str]:
    """What puts bindings in order by their destinations, however they came: queues, then names."""
    return (isinstance(binding.destination, Exchange), binding.destination.name)
