"""Convert declarations to rows of the store's definitions, and restore them.

    kind        key                                           fields
    vhost       name                                          those of `metadata.py`
    exchange    vhost, name                                   type, auto_delete, internal, arguments
    queue       vhost, name                                   kind, identity, auto_delete, arguments
    binding     vhost, source, destination_type,              arguments
                destination, routing_key, arguments_key

Only durable exchanges and queues, and bindings between them, have rows; predeclared exchanges have
none. Some exchange types have a log; its identity is among the arguments of the row.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from harebell.base.errors import StoreError
from harebell.base.limits import FRAME_MAX_BYTES
from harebell.base.ports import EXCHANGE_LOG, Store
from harebell.model.binding import Binding, frozen
from harebell.model.events import Events
from harebell.model.exchange import KINDS, Exchange
from harebell.model.histories import Histories
from harebell.model.queue.contract import Queue
from harebell.model.resource import precondition
from harebell.model.settings.metadata import Metadata

_KEY_DIGITS = 32


def is_durable(binding: Binding) -> bool:
    """True if a binding survives a restart: both its ends are durable."""
    return bool(binding.source.durable and binding.destination.durable)


def _arguments_key(arguments: Mapping[str, Any]) -> str:
    """Return a short text that is equal only for equal arguments; "" for none."""
    if not arguments:
        return ""
    # A digest: tables have no order, and may be too large for the key of a row.
    text = repr(frozen(arguments)).encode("utf-8", "surrogatepass")
    return hashlib.sha256(text).hexdigest()[:_KEY_DIGITS]


def _binding_key(vhost: str, binding: Binding) -> tuple[str, ...]:
    destination = binding.destination
    return (
        vhost,
        binding.source.name,
        "queue" if isinstance(destination, Queue) else "exchange",
        destination.name,
        binding.routing_key,
        _arguments_key(binding.arguments),
    )


def _with_log(exchange: Exchange) -> Mapping[str, Any]:
    """Return the arguments of an exchange as they are stored."""
    if not exchange.has_log:
        return exchange.arguments
    return {**exchange.arguments, EXCHANGE_LOG: exchange.identity}


class Recorder:
    """Stores the declarations of one vhost, and notes events of them.

    Args:
        vhost: the vhost's name.
        store: the store with the definitions and the group commit.
        events: the events of the broker.
        histories: the eras of the logs.

    Attributes:
        ticket: the commit of the last change; 0 before the first.
        histories: as given.
    """

    def __init__(self, vhost: str, store: Store, events: Events, histories: Histories) -> None:
        self._vhost = vhost
        self.events = events
        self.histories = histories
        self._definitions = store.definitions
        self._commit = store.commit
        self.ticket = 0

    def check(self, resource: str, arguments: Mapping[str, Any]) -> None:
        """Refuse arguments that could not be stored or sent; `resource` names their owner.

        Raises:
            Refusal: PRECONDITION_FAILED, with the reason.
        """
        if not arguments:
            return
        size = self._definitions.check(resource, arguments)
        if size > FRAME_MAX_BYTES:
            raise precondition(
                f"invalid arguments of {resource}: they have {size} bytes, at most "
                f"{FRAME_MAX_BYTES} are possible"
            )

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Store all changes of a block, or none of them if it raises; the same with their events.

        The model is changed after the change is gathered for the store, so that nothing is in the
        model that a restart would lose.
        """
        ticket, noted = self.ticket, len(self.events.waiting)
        try:
            with self._definitions.whole():
                yield
        except BaseException:
            # An event of a change that was not made must not be published.
            self.ticket = ticket
            del self.events.waiting[noted:]
            raise

    def put(self, kind: str, key: tuple[str, ...], fields: Mapping[str, Any]) -> None:
        """Add or replace a definition.

        Raises:
            Refusal: PRECONDITION_FAILED, a value cannot be stored.
        """
        self._definitions.put(kind, key, fields)
        self.ticket = self._commit.ticket

    def drop(self, kind: str, key: tuple[str, ...]) -> None:
        """Remove a definition."""
        self._definitions.drop(kind, key)
        self.ticket = self._commit.ticket

    def vhost_is(self, metadata: Metadata) -> None:
        """Store the vhost itself: it is new, or has other metadata."""
        self.put("vhost", (self._vhost,), metadata.row())

    def vhost_gone(self) -> None:
        """Remove the vhost, before everything in it."""
        self.drop("vhost", (self._vhost,))

    def exchange_made(self, exchange: Exchange) -> None:
        """Store an exchange."""
        if exchange.durable:
            fields = {
                "type": exchange.KIND,
                "auto_delete": exchange.auto_delete,
                "internal": exchange.internal,
                "arguments": _with_log(exchange),
            }
            self.put("exchange", (self._vhost, exchange.name), fields)
        self.events.exchange_made(self._vhost, exchange)

    def exchange_gone(self, exchange: Exchange) -> None:
        """Remove an exchange."""
        if exchange.durable:
            self.drop("exchange", (self._vhost, exchange.name))
        self.events.exchange_gone(self._vhost, exchange)

    def queue_made(self, queue: Queue, kind: str) -> None:
        """Store a queue; `kind` is its type for the factory."""
        if queue.durable:
            fields = {
                "kind": kind,
                "identity": queue.identity,
                "auto_delete": queue.auto_delete,
                "arguments": queue.arguments,
            }
            self.put("queue", (self._vhost, queue.name), fields)
        self.histories.made(queue)
        self.events.queue_made(self._vhost, queue)

    def queue_gone(self, queue: Queue) -> None:
        """Remove a queue."""
        if queue.durable:
            self.drop("queue", (self._vhost, queue.name))
        self.histories.unstore(queue)
        self.events.queue_gone(self._vhost, queue)

    def bound(self, binding: Binding) -> None:
        """Store a binding."""
        if is_durable(binding):
            key = _binding_key(self._vhost, binding)
            self.put("binding", key, {"arguments": binding.arguments})
        self.events.binding("created", self._vhost, binding)

    def unbound(self, binding: Binding) -> None:
        """Remove a binding that was deleted, alone or with one of its ends."""
        if is_durable(binding):
            self.drop("binding", _binding_key(self._vhost, binding))
        self.events.binding("deleted", self._vhost, binding)


def _is_missing(resource: str, name: str, vhost: str, kind: str) -> StoreError:
    return StoreError(
        f"the data directory has the {resource} '{name}' in vhost '{vhost}' of type '{kind}', "
        "which this version does not have: use the version that made it"
    )


def restored_exchanges(store: Store) -> Iterator[tuple[str, Exchange]]:
    """Yield all stored exchanges with the names of their vhosts.

    Raises:
        StoreError: this version does not have the type of one.
    """
    for (vhost, name), fields in store.definitions.load("exchange"):
        kind = KINDS.get(fields["type"])
        if kind is None:
            raise _is_missing("exchange", name, vhost, fields["type"])
        arguments = dict(fields["arguments"])
        identity = arguments.pop(EXCHANGE_LOG, "")
        exchange = kind(
            name,
            durable=True,
            auto_delete=fields["auto_delete"],
            internal=fields["internal"],
            arguments=arguments,
        )
        exchange.identity = identity
        yield vhost, exchange


def restored_queues(store: Store) -> Iterator[Queue]:
    """Yield all stored queues with their logs.

    Raises:
        StoreError: this version does not have the type of one.
    """
    for (vhost, name), fields in store.definitions.load("queue"):
        # Imported with the first queue, as in `VHost.declare_queue`.
        from harebell.model.queue.factory import make_queue

        options = {
            "durable": True,
            "auto_delete": fields["auto_delete"],
            "arguments": fields["arguments"],
        }
        try:
            yield make_queue(
                fields["kind"], name, vhost, store, fields["identity"], options, restored=True
            )
        except LookupError:
            raise _is_missing("queue", name, vhost, fields["kind"]) from None


class BindingHolder(Protocol):
    """A vhost, as its bindings are restored."""

    @property
    def queues(self) -> Mapping[str, Queue]:
        """The queues by name."""

    @property
    def exchanges(self) -> Mapping[str, Exchange]:
        """The exchanges by name."""

    def attach(self, binding: Binding) -> object:
        """Add a binding."""


def restore_bindings(vhosts: Mapping[str, BindingHolder], store: Store) -> list[str]:
    """Restore the bindings; return a log line for each binding that had lost an end.

    Args:
        vhosts: every vhost by name, with its exchanges and queues.
        store: the store with the definitions.
    """
    lost = []
    for key, fields in store.definitions.load("binding"):
        vhost_name, source_name, destination_type, destination_name, routing_key, _ = key
        vhost = vhosts[vhost_name]
        ends: Mapping[str, Exchange | Queue] = (
            vhost.queues if destination_type == "queue" else vhost.exchanges
        )
        source = vhost.exchanges.get(source_name)
        destination = ends.get(destination_name)
        if source is None or destination is None:
            lost.append(
                f"a binding in vhost '{vhost_name}' from exchange '{source_name}' to "
                f"{destination_type} '{destination_name}' has lost one of them: left out"
            )
            continue
        vhost.attach(Binding(source, destination, routing_key, fields["arguments"]))
    return lost
