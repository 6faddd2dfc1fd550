"""A virtual host: its exchanges, queues and bindings, and the rules for declaring them.

The error texts are those of RabbitMQ. `owner` is the token of the connection that makes a request:
only its owner may use an exclusive queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from harebell.base.chooser import Chooser
from harebell.base.clock import Clock
from harebell.base.counters import Churn
from harebell.base.errors import ErrorKind, Refusal
from harebell.base.histogram import Histogram
from harebell.base.ports import Store
from harebell.base.slices import Slices
from harebell.base.timers import Timers
from harebell.model import equivalence
from harebell.model.binding import NO_ARGUMENTS, Binding
from harebell.model.consumer import Consumer
from harebell.model.dead_letter_counts import DeadLetterCounts
from harebell.model.definitions import Recorder
from harebell.model.editor import Editor
from harebell.model.events import Events
from harebell.model.exchange import KINDS, Exchange
from harebell.model.exchange.direct import DirectExchange
from harebell.model.exchange.gate import add_gate, check_gate
from harebell.model.exchange.tap import check_tap, tap_of
from harebell.model.exchange.topic import TopicExchange
from harebell.model.firehose import TRACE_EXCHANGE, Firehose
from harebell.model.histories import Histories
from harebell.model.query_reports import QueryReports
from harebell.model.queue.arguments import (
    check_queue_arguments,
    check_queue_properties,
    check_repeated,
    with_queue_type,
)
from harebell.model.queue.contract import Queue
from harebell.model.queue_context import QueueContext
from harebell.model.removal import Removal
from harebell.model.reserved import (
    check_exchange_deletion,
    check_exchange_name,
    check_exchange_type,
    check_length,
    check_queue_name,
)
from harebell.model.resource import (
    RESERVED_PREFIX,
    limit_reached,
    missing,
    precondition,
    refused,
    rendered,
)
from harebell.model.router import Router
from harebell.model.settings.ceilings import Ceilings
from harebell.model.settings.metadata import Metadata
from harebell.model.settings.parameters import Parameters
from harebell.model.settings.policies import Policies
from harebell.model.settings.vhost_limits import MAX_QUEUES, over

if TYPE_CHECKING:
    from harebell.model.exchange.gate import Test

PREDECLARED = {
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}
WATCHERS = (TRACE_EXCHANGE,)
"""Internal topic exchanges to which only the broker publishes."""


class VHost:
    """A virtual host.

    Args:
        name: unique in the broker, such as "/".
        store: opens the logs of queues.
        editor: reads and changes messages; also decodes headers for the exchanges.
        clock: wall clock and monotonic clock.
        awaiting: queues that wait for the next commit; shared by the broker.
        chooser: makes random choices for the exchanges; shared by the broker.
        timers: the timers of the broker.
        events: publishes events of the vhost; shared by the broker.

    Attributes:
        context: the parts that its queues and exchanges share.
        ticking: queues that need `tick`.
        recorder: stores durable declarations.
        policies: settings for queues and exchanges whose names match a pattern.
        parameters: values of components; the vhost limits are among them.
        metadata: description, tags and default queue type; changed by `set_metadata`.
        broker_queue_type: the default queue type if the metadata have none.
        ceilings: limits for all vhosts together; shared by the broker.
        churn: counters of what is declared and deleted; shared by the broker.
        query_reports: what queries have reported.
        ending: whether it is being deleted, so that no connection may be opened.
    """

    def __init__(
        self,
        name: str,
        store: Store,
        editor: Editor,
        clock: Clock | None = None,
        awaiting: list[Queue] | None = None,
        chooser: Chooser | None = None,
        timers: Timers | None = None,
        events: Events | None = None,
        histories: Histories | None = None,
    ) -> None:
        self.name = name
        self.ending = False
        self.metadata = Metadata()
        self.broker_queue_type = ""
        self.ceilings = Ceilings()
        self.churn = Churn()
        self.router = Router(editor.headers_of)
        self.context = QueueContext(
            self.router,
            editor,
            Clock() if clock is None else clock,
            [] if awaiting is None else awaiting,
            chooser,
            store,
            timers,
        )
        self.query_reports = QueryReports(self.context.clock)
        self.ticking: dict[str, Queue] = {}
        self.exchanges = self.router.exchanges
        self.queues = self.router.queues
        self._store = store
        if events is None:
            events = Events(editor, self.context.clock, "")
        self.recorder = Recorder(name, store, events, histories or Histories(store))
        self.parameters = Parameters(name, self.recorder)
        self.policies = Policies(name, self.recorder, self.context, store)
        work = self.context.timers.work
        self._removal = Removal(self._unbind, self._drop, work, events)
        self.context.drop_queue = self.retire
        # Exclusive queues by name, for each owner.
        self._owned: dict[object, dict[str, Queue]] = {}
        self.exchanges[""] = DirectExchange("", durable=True)
        for exchange, kind in PREDECLARED.items():
            self.exchanges[exchange] = KINDS[kind](exchange, durable=True)
        for exchange in WATCHERS:
            self.add_watcher(exchange)

    @property
    def editor(self) -> Editor:
        """Reads and changes messages."""
        return self.context.editor

    def add_watcher(self, name: str) -> None:
        """Add an exchange to which only the broker publishes."""
        self.exchanges[name] = TopicExchange(name, durable=True, internal=True)

    def share_counts(self, deliveries: Histogram, letters: DeadLetterCounts) -> None:
        """Count in counters of the broker.

        Args:
            deliveries: the failed deliveries of queues that are deleted.
            letters: dead letters.
        """
        self.context.delivery_counts = deliveries
        self.context.letter_counts = letters

    # --- metadata -----------------------------------------------------------------------------

    def set_metadata(self, metadata: Metadata) -> None:
        """Replace the metadata, and store them."""
        self.recorder.vhost_is(metadata)
        self.take_metadata(metadata)
        self.policies.apply_all()

    def take_metadata(self, metadata: Metadata) -> None:
        """Replace the metadata without storing them; they apply to queues declared later."""
        self.metadata = metadata
        self.policies.durability = metadata.durability
        self.router.tracer = (
            Firehose(self.name, self.recorder.events.node, self.router, self.context.editor)
            if metadata.tracing
            else None
        )

    @property
    def default_queue_type(self) -> str:
        """Return the default queue type; "" for the default of the broker."""
        return self.metadata.default_queue_type

    @property
    def limits(self) -> Mapping[str, Any]:
        """The limits of the vhost, by the names of `vhost_limits`."""
        return self.parameters.limits

    def queue_limit(self, count: int = 1) -> int | None:
        """Return the limit that so many more queues would exceed; None if there is none."""
        return over(self.limits, MAX_QUEUES, len(self.queues) + count - 1) if self.limits else None

    def check_room(self, queue: str) -> None:
        """Refuse a new queue that exceeds a limit."""
        limit = self.queue_limit()
        if limit is not None:
            raise limit_reached(
                f"cannot declare queue '{queue}': queue limit in vhost '{self.name}' ({limit}) is "
                "reached"
            )
        self.ceilings.check_queue(queue)

    # --- exchanges ----------------------------------------------------------------------------

    def exchange(self, name: str) -> Exchange:
        """Return the exchange of that name; refuse if there is none."""
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise missing("exchange", name, self.name)
        return exchange

    def declare_exchange(
        self,
        name: str,
        kind: str,
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> Exchange:
        """Declare an exchange, or check that the existing one is equivalent."""
        self.check_not_default(name)
        check_exchange_type(kind)
        arguments = arguments or {}
        resource = rendered("exchange", name, self.name)
        exchange = self.exchanges.get(name)
        if exchange is not None:
            equivalence.check_field("type", resource, kind, exchange.KIND)
            equivalence.check_field("durable", resource, durable, exchange.durable)
            equivalence.check_field("auto_delete", resource, auto_delete, exchange.auto_delete)
            equivalence.check_field("internal", resource, internal, exchange.internal)
            # RabbitMQ compares this argument of an exchange only.
            equivalence.check_arguments(
                resource, arguments, exchange.arguments, ("alternate-exchange",)
            )
            return exchange
        check_length("exchange name", name)
        # Not before: clients may declare amq.direct again as it is, in RabbitMQ too.
        check_exchange_name(name)
        alternate = arguments.get("alternate-exchange")
        if alternate is not None and not isinstance(alternate, str):
            type_name = equivalence.type_name(alternate)
            raise precondition(
                f"invalid type '{type_name}' for arg 'alternate-exchange' in {resource}"
            )
        KINDS[kind].check_arguments(resource, arguments)
        check_tap(resource, KINDS[kind], arguments)
        self.recorder.check(resource, arguments)
        self.ceilings.check_exchange(name, self.name)
        exchange = KINDS[kind](
            name, durable=durable, auto_delete=auto_delete, internal=internal, arguments=arguments
        )
        # Before the row is made, which names the log by it.
        if exchange.has_log:
            exchange.identity = self._store.new_identity()
        with self.recorder.whole():
            self.recorder.exchange_made(exchange)
            self.add_exchange(exchange)
        return exchange

    def add_exchange(self, exchange: Exchange) -> None:
        """Add an exchange that was just made or restored."""
        # Before the vhost has it: when its log cannot be opened, `whole` undoes the row, and
        # nothing refers to the exchange.
        exchange.enter(self.context)
        exchange.tap = tap_of(exchange, self.context)
        exchange.special = exchange.tap is not None
        self.policies.apply_to_exchange(exchange)
        self.exchanges[exchange.name] = exchange
        self.router.changed()

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> None:
        """Delete an exchange and its bindings; do nothing if it does not exist."""
        exchange = self.find_exchange_to_delete(name, if_unused=if_unused)
        if exchange is not None:
            self._drop_exchange(exchange)

    def find_exchange_to_delete(self, name: str, *, if_unused: bool = False) -> Exchange | None:
        """Return the exchange if it may be deleted; None if it does not exist; refuse otherwise."""
        self.check_not_default(name)
        check_exchange_deletion(name, self.name)
        exchange = self.exchanges.get(name)
        if exchange is not None and if_unused and exchange.bindings:
            raise precondition(f"{rendered('exchange', name, self.name)} in use")
        return exchange

    def _drop_exchange(self, exchange: Exchange) -> None:
        bound = (exchange.bound or {}).values()
        with self.recorder.whole():
            self.recorder.exchange_gone(exchange)
            # A binding of the exchange to itself is in both.
            for binding in dict.fromkeys((*exchange.bindings.values(), *bound)):
                self.recorder.unbound(binding)
        del self.exchanges[exchange.name]
        self._take_out_exchange(exchange)

    def _take_out_exchange(self, exchange: Exchange) -> None:
        """Remove an exchange that is neither stored nor found by its name any more."""
        for binding in exchange.bindings.values():
            _forget(binding)
        exchange.bindings.clear()
        # Bindings from other exchanges to this one.
        self._drop_bound(exchange)
        self.router.changed()
        exchange.leave()
        if exchange.tap is not None:
            exchange.tap.leave()

    def check_not_default(self, name: str) -> None:
        """Refuse an operation that the default exchange does not allow."""
        if name == "":
            raise refused("operation not permitted on the default exchange")

    # --- queues -------------------------------------------------------------------------------

    def queue(self, name: str, owner: object = None) -> Queue:
        """Return a queue for an owner; refuse a missing one and one exclusive to another owner."""
        queue = self.queues.get(name)
        if queue is None:
            raise missing("queue", name, self.name)
        self._check_owner(queue, owner)
        return queue

    def _check_owner(self, queue: Queue, owner: object) -> None:
        if queue.owner is not None and queue.owner is not owner:
            self._locked(queue)

    def _locked(self, queue: Queue) -> None:
        raise Refusal(
            ErrorKind.RESOURCE_LOCKED,
            "cannot obtain exclusive access to locked "
            f"{rendered('queue', queue.name, self.name)}. It could be originally declared on "
            "another connection or the exclusive property value does not match that of the "
            "original declaration.",
        )

    def declare_queue(
        self,
        name: str,
        *,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        arguments: Mapping[str, Any] | None = None,
        owner: object = None,
        generated: bool = False,
    ) -> Queue:
        """Declare a queue, or check that the existing one is equivalent.

        Args:
            name: its name, never empty.
            durable: whether it survives a restart; an exclusive queue never does.
            exclusive: whether only `owner` may use it.
            auto_delete: whether it is deleted with its last consumer.
            arguments: as given by the client.
            owner: the token of the connection.
            generated: whether the broker chose the name, which may then begin with "amq.".
        """
        # RabbitMQ makes a durable exclusive queue a transient one, and compares redeclarations with
        # that.
        kept = durable and not exclusive
        default = self.default_queue_type or self.broker_queue_type
        arguments = with_queue_type(arguments or {}, default, lasting=kept and not auto_delete)
        # RabbitMQ refuses the prefix of a queue even if the queue exists, unlike that of an
        # exchange.
        if not generated:
            check_queue_name(name)
        resource = rendered("queue", name, self.name)
        self.churn.queue_declared += 1
        queue = self.queues.get(name)
        if queue is not None:
            # Before its properties are compared: RabbitMQ answers 405, and not 406, to a connection
            # that may not use the queue, and to one that gives another exclusive flag.
            self._check_owner(queue, owner)
            if exclusive != (queue.owner is not None):
                self._locked(queue)
            equivalence.check_field("durable", resource, kept, queue.durable)
            equivalence.check_field("auto_delete", resource, auto_delete, queue.auto_delete)
            check_repeated(resource, arguments, queue.arguments)
            return queue
        check_length("queue name", name)
        check_queue_arguments(resource, arguments)
        check_queue_properties(
            resource,
            arguments,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            generated=generated,
        )
        options = {
            "durable": kept,
            "auto_delete": auto_delete,
            "owner": owner if exclusive else None,
            "arguments": arguments,
        }
        # Before the log of the queue is opened: arguments that cannot be stored leave nothing
        # behind.
        self.recorder.check(resource, arguments)
        return self._make_queue(name, arguments, options)

    def _make_queue(
        self, name: str, arguments: Mapping[str, Any], options: dict[str, Any]
    ) -> Queue:
        """Make and record a queue whose properties were checked; after an error nothing is left."""
        # Imported with the first queue: a broker that has none starts without the code of queues.
        from harebell.model.queue.factory import kind_of, make_queue

        kind = kind_of(arguments)
        identity = self._store.new_identity()
        with self.recorder.whole():
            queue = make_queue(kind, name, self.name, self._store, identity, options)
            try:
                self.recorder.queue_made(queue, kind)
                self.add_queue(queue)
            except Exception:
                # `whole` undoes the rows; the queue may be in the model and have a log already.
                self._forget_name(queue)
                self.recorder.histories.gone(queue)
                queue.delete()
                raise
        self.churn.queue_created += 1
        return queue

    def add_queue(self, queue: Queue) -> None:
        """Add a queue that was just made."""
        # It joins the vhost first: its settings need the context.
        self.take_back(queue)
        self.policies.apply_to_queue(queue)

    def take_back(self, queue: Queue) -> None:
        """Add a restored queue; it is configured after everything is restored."""
        self.queues[queue.name] = queue
        if queue.owner is not None:
            self.give(queue, queue.owner)
        queue.join(self.context)
        if queue.ticks:
            self.ticking[queue.name] = queue

    def give(self, queue: Queue, owner: object) -> None:
        """Make a queue exclusive to an owner; None makes it shared."""
        self._disown(queue)
        queue.owner = owner
        if owner is not None:
            self._owned.setdefault(owner, {})[queue.name] = queue

    def owned_by(self, owner: object) -> list[Queue]:
        """Return the exclusive queues of an owner."""
        return list(self._owned.get(owner, {}).values())

    def _disown(self, queue: Queue) -> None:
        owned = self._owned.get(queue.owner)
        if owned is not None and owned.pop(queue.name, None) is not None and not owned:
            del self._owned[queue.owner]

    def delete_queue(
        self, name: str, owner: object = None, *, if_unused: bool = False, if_empty: bool = False
    ) -> int:
        """Delete a queue and its bindings; return its ready messages, 0 if it does not exist."""
        queue = self.find_queue_to_delete(name, owner, if_unused=if_unused, if_empty=if_empty)
        return 0 if queue is None else self.drop_queue(queue)

    def find_queue_to_delete(
        self, name: str, owner: object = None, *, if_unused: bool = False, if_empty: bool = False
    ) -> Queue | None:
        """Return the queue if it may be deleted; None if it does not exist; refuse otherwise."""
        # RabbitMQ answers delete-ok for a missing queue: a client may repeat a delete.
        if name not in self.queues:
            return None
        queue = self.queue(name, owner)
        queue.check_delete(if_unused=if_unused, if_empty=if_empty)
        resource = rendered("queue", name, self.name)
        if if_unused and (queue.consumers or queue.browsers):
            raise precondition(f"{resource} in use")
        # Leased messages are not ready, but become so when their claim is released.
        if if_empty and (queue.ready_count() or queue.leased):
            raise precondition(f"{resource} not empty")
        return queue

    def drop_queue(self, queue: Queue) -> int:
        """Delete a queue without checks; return its ready messages."""
        if queue.deleted:
            return 0
        # The rows first, which may fail as a whole; then the model, which cannot fail.
        with self.recorder.whole():
            self._unstore_queue(queue)
        return self._take_out_queue(queue)

    def _unstore_queue(self, queue: Queue) -> None:
        """Remove every row of a queue."""
        self.recorder.queue_gone(queue)
        for binding in (queue.bound or {}).values():
            self.recorder.unbound(binding)
        if queue.leases is not None:
            queue.leases.unstore(self, queue)
        queue.unstore()

    def _take_out_queue(self, queue: Queue) -> int:
        """Remove a queue that is not stored any more."""
        if queue.leases is not None:
            queue.leases.gone()
        self.recorder.histories.gone(queue)
        self.churn.queue_deleted += 1
        self._forget_name(queue)
        self._drop_bound(queue)
        return queue.delete()

    def _forget_name(self, queue: Queue) -> None:
        """Remove a queue from the names; a new queue may have its name already."""
        self._disown(queue)
        if self.queues.get(queue.name) is queue:
            del self.queues[queue.name]
            self.ticking.pop(queue.name, None)

    def retire(self, resource: Queue | Exchange) -> None:
        """Delete an unused queue or exchange."""
        self._removal.drop(resource)

    def _drop(self, resource: Queue | Exchange) -> None:
        """Delete the queue if it still exists."""
        if isinstance(resource, Queue):
            self.drop_queue(resource)
        elif self.exchanges.get(resource.name) is resource:
            self._drop_exchange(resource)

    def drop_owned(self, owner: object) -> None:
        """Delete the exclusive queues of a closed connection."""
        owned = self._owned.pop(owner, None)
        if owned is None:
            return
        for name in owned:
            # An exclusive queue cannot be declared twice, so the name is still its own.
            del self.queues[name]
            self.ticking.pop(name, None)
        self._removal.drop_all(owned.values())

    def emptied(self) -> Slices[None]:
        """Delete in slices what is in it, if that is much; `delete` removes the rest at once.

        A crash leaves fewer queues, exchanges and bindings, as after that many deletions.
        """
        resources: list[Queue | Exchange] = [*self._declared(), *self.queues.values()]
        yield from self._removal.emptied(resources, [*self.exchanges.values()])

    def _declared(self) -> list[Exchange]:
        """Return the exchanges that have rows: not those that were there from the start."""
        return [
            exchange
            for exchange in self.exchanges.values()
            if exchange.name and not exchange.name.startswith(RESERVED_PREFIX)
        ]

    def delete(self) -> None:
        """Delete the vhost atomically, with all queues and exchanges, in use or not."""
        queues = list(self.queues.values())
        declared = self._declared()
        with self.recorder.whole():
            self.recorder.vhost_gone()
            for queue in queues:
                self._unstore_queue(queue)
            for exchange in self.exchanges.values():
                for binding in (exchange.bound or {}).values():
                    self.recorder.unbound(binding)
            for exchange in declared:
                self.recorder.exchange_gone(exchange)
            self.policies.unstore()
            self.parameters.unstore()
        for exchange in declared:
            # First, so that none of them is deleted again with its last binding.
            del self.exchanges[exchange.name]
        for queue in queues:
            self._take_out_queue(queue)
        for exchange in declared:
            self._take_out_exchange(exchange)

    # --- consumers ----------------------------------------------------------------------------

    def check_consumer(self, queue: Queue, *, exclusive: bool) -> None:
        """Refuse a consumer that conflicts with the existing ones."""
        # An exclusive consumer has the queue alone, so the first one is enough to look at.
        first = queue.consumers.first()
        taken = first is not None and first.exclusive  # an exclusive consumer
        if taken or (exclusive and queue.consumers):
            resource = rendered("queue", queue.name, self.name)
            raise refused(f"{resource} in exclusive use")

    def remove_consumer(self, consumer: Consumer) -> None:
        """Remove a consumer; delete an auto-delete queue with its last one."""
        queue: Queue = consumer.queue
        if queue.deleted:
            return
        queue.remove_consumer(consumer)
        if queue.auto_delete and not (queue.stays or queue.consumers or queue.browsers):
            queue.abandon(self.retire)

    # --- bindings -----------------------------------------------------------------------------

    def bind(
        self,
        source: str,
        destination: Exchange | Queue,
        routing_key: str,
        arguments: Mapping[str, Any] | None = None,
    ) -> Binding:
        """Bind a queue or an exchange to the exchange `source`; an equal binding is no error."""
        self.check_not_default(source)
        exchange = self.exchange(source)
        binding = Binding(exchange, destination, routing_key, arguments or NO_ARGUMENTS)
        # An equal binding is accepted without a change, as the specification demands of queue.bind.
        if binding not in exchange.bindings:
            check_length("binding key", routing_key)
            check_gate(binding)
            self.recorder.check(f"the binding to {self._named(exchange)}", binding.arguments)
            with self.recorder.whole():
                self.recorder.bound(binding)
                self.attach(binding)
            # Behind the block: the messages that it sends could not be taken back.
            exchange.greet(binding)
            if exchange.tap is not None:
                exchange.tap.greet(exchange, binding)
        return binding

    def _named(self, exchange: Exchange) -> str:
        return rendered("exchange", exchange.name, self.name)

    def attach(self, binding: Binding) -> bool:
        """Add a binding; False if there is an equal one."""
        source, destination = binding.source, binding.destination
        add_gate(binding, self._selection)
        if not source.bind(binding):
            return False
        if destination.bound is None:
            destination.bound = {}
        destination.bound[binding] = binding
        self.router.changed()
        return True

    def _selection(self) -> Test:
        """Return what tests one message for the bindings that have a selector."""
        # Imported here: most brokers never select.
        from harebell.model.queue.features.looker import Looker

        return Looker(self.context, None).lets_pass

    def unbind(
        self,
        source: str,
        destination: Exchange | Queue | None,
        routing_key: str,
        arguments: Mapping[str, Any] | None = None,
    ) -> bool:
        """Remove a binding; False if there was none."""
        self.check_not_default(source)
        exchange = self.exchanges.get(source)
        # RabbitMQ answers unbind-ok even if the exchange, the queue or the binding is missing.
        if exchange is None or destination is None:
            return False
        wanted = Binding(exchange, destination, routing_key, arguments or NO_ARGUMENTS)
        binding = exchange.bindings.get(wanted)
        if binding is None:
            return False
        self._unbind(binding)
        return True

    def unbind_some(self, resource: Exchange | Queue) -> bool:
        """Remove some bindings of a deleted queue or exchange; True when few are left."""
        return self._removal.unbind_some(resource)

    def _unbind(self, binding: Binding) -> None:
        """Remove a binding; an auto-delete exchange goes with its last one."""
        self.recorder.unbound(binding)
        binding.source.unbind(binding)
        _forget(binding)
        self.router.changed()
        self._auto_delete(binding.source)

    def _drop_bound(self, destination: Exchange | Queue) -> None:
        """Remove all bindings that lead to a deleted destination, which are not stored any more."""
        bound, destination.bound = destination.bound, None
        if not bound:
            return
        sources = []
        for binding in bound.values():
            binding.source.unbind(binding)
            sources.append(binding.source)
        self.router.changed()
        for source in sources:
            self._auto_delete(source)

    def _auto_delete(self, exchange: Exchange) -> None:
        if (
            exchange.auto_delete
            and not exchange.bindings
            and self.exchanges.get(exchange.name) is exchange
        ):
            self._removal.drop(exchange)

    def bindings(self) -> Iterator[Binding]:
        """Iterate over the explicit bindings; they may change meanwhile."""
        for exchange in [*self.exchanges.values()]:
            yield from [*exchange.bindings.values()]


def _forget(binding: Binding) -> None:
    """Remove a binding from the list of its destination."""
    bound = binding.destination.bound
    if bound is not None:
        bound.pop(binding, None)
