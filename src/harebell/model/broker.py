"""The broker: the vhosts, and the parts that they share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from harebell.base.chooser import Chooser
from harebell.base.clock import Clock
from harebell.base.counters import Churn
from harebell.base.durability import FSYNC
from harebell.base.errors import StoreError
from harebell.base.failures import Failures
from harebell.base.gauge import Gauge
from harebell.base.histogram import DELIVERY_COUNTS, Histogram
from harebell.base.message import Message
from harebell.base.ports import BRANCH_LOG, Log, Store
from harebell.base.timers import Timers
from harebell.base.work import Work
from harebell.model.dead_letter_counts import DeadLetterCounts
from harebell.model.definitions import restore_bindings, restored_exchanges, restored_queues
from harebell.model.editor import Editor
from harebell.model.events import EVENT_EXCHANGE, INTERNAL_USER, Events
from harebell.model.histories import Histories
from harebell.model.jobs import Jobs
from harebell.model.limits import QUEUES_PER_TICK
from harebell.model.log_exchange import LOG_EXCHANGE, LogExchange
from harebell.model.publishing.publishers import Entry, Key, Publishers, check_idle
from harebell.model.publishing.stages import Room, Stages
from harebell.model.queue.contract import Queue
from harebell.model.settings.ceilings import Ceilings
from harebell.model.settings.global_parameters import GlobalParameters
from harebell.model.settings.metadata import Metadata, MetadataError, metadata_of
from harebell.model.settings.parameters import restore_parameters
from harebell.model.settings.policies import restore_policies
from harebell.model.staging import Staging
from harebell.model.vhost import VHost

if TYPE_CHECKING:
    from harebell.model.lease.leases import Leases
    from harebell.model.xa.branches import Branches

DEFAULT_VHOST = "/"


class Broker:
    """A broker: everything that is not bound to a connection.

    Args:
        store: opens the logs of queues.
        gauge: counts the memory of queued messages.
        headers_of: decodes the headers of a message.
        editor: reads and changes messages; without it dead letters have no history.
        clock: wall clock and monotonic clock.
        chooser: makes random choices for the exchanges; None for a fixed choice.
        node: the name of the node for events and monitoring.
        default_queue_type: the queue type if neither the declaration nor the vhost has one.
        work: the work budget; None for no limit per turn.

    Attributes:
        store: as given.
        commit: the store's group commit.
        events: published to the event exchange.
        histories: the eras of the logs.
        log: the log exchange; gets log lines if it is configured.
        global_parameters: values for all vhosts.
        default_queue_type: as given.
        timers: pending timers; the server runs them when they are due.
        jobs: messages that are moved, copied, removed or retried by a filter.
        staging: files (class file) that arrive in parts and are not published yet.
        churn: counters of connections, channels and queues that were opened and closed.
        delivery_counts: failed deliveries of messages, in queues that were deleted.
        letter_counts: counts dead letters.
        publishers: the last batches of named publishers.
        stages: batches that arrive in parts and are not committed yet (stages).
        ceilings: broker-wide limits; changed by `limit`.
    """

    def __init__(
        self,
        store: Store,
        gauge: Gauge,
        headers_of: Callable[[Message], Mapping[str, Any]],
        editor: Editor | None = None,
        clock: Clock | None = None,
        chooser: Chooser | None = None,
        node: str = "harebell@localhost",
        default_queue_type: str = "",
        work: Work | None = None,
    ) -> None:
        self.default_queue_type = default_queue_type
        self.vhost_added: Callable[[VHost], None] = lambda vhost: None
        self.gauge = gauge
        self.store = store
        self.commit = store.commit
        self.clock = Clock() if clock is None else clock
        self.work = Work() if work is None else work
        self.failures = Failures()
        self.timers = Timers(self.clock, self.work, self.failures)
        self.staging = Staging(store.files, self.clock, self.timers, store.commit)
        self.publishers = Publishers(store, self.clock)
        self.stages = Stages(store.files, self.clock, self.timers)
        self._editor = Editor(headers_of) if editor is None else editor
        self._awaiting: list[Queue] = []
        self._ticking: Iterator[Sequence[Queue]] = iter(())
        self._chooser = Chooser() if chooser is None else chooser
        self.churn = Churn()
        self.delivery_counts = Histogram(DELIVERY_COUNTS)
        self.letter_counts = DeadLetterCounts()
        self.events = Events(self._editor, self.clock, node, self.failures)
        self.global_parameters = GlobalParameters(store)
        self.histories = Histories(store)
        self.vhosts: dict[str, VHost] = {}
        self.ceilings = Ceilings()
        self.ceilings.every = self.vhosts
        self._branch_log: Log | None = None
        self.jobs = Jobs(store, self.timers, self.vhosts, self._editor, self._awaiting)
        first = self._take_in(DEFAULT_VHOST)
        first.add_watcher(EVENT_EXCHANGE)
        first.add_watcher(LOG_EXCHANGE)
        self.log = LogExchange(first.router, self._editor, self.clock, node)
        self.events.attach(first.router)

    @cached_property
    def branches(self) -> Branches:
        """The branches of distributed transactions."""
        # Imported with the first use, as are leases: most brokers have neither.
        from harebell.model.xa.branches import Branches

        return Branches(self.store, self.timers, self.vhosts, self.gauge, self._branch_log)

    @property
    def prepared(self) -> int:
        """How many branches there are that another life of the broker has left."""
        return len(self.branches) if "branches" in vars(self) else 0

    @cached_property
    def leases(self) -> Leases:
        """The lease groups."""
        from harebell.model.lease.leases import Leases

        return Leases(self.store, self.timers, self.vhosts)

    def stage_within(self, room: Room) -> None:
        """Set the limits of what is staged, batches and files."""
        self.stages.room = room
        self.staging.floor = room.floor

    def leave_default_vhost(self) -> None:
        """Serve no vhost "/": another broker of the cluster does. Called before `restore`."""
        del self.vhosts[DEFAULT_VHOST]

    def limit(self, ceilings: Ceilings) -> None:
        """Set the broker-wide limits; they apply to what is declared later."""
        ceilings.every = self.vhosts
        # Set by the cluster, and not part of the new limits.
        ceilings.elsewhere = self.ceilings.elsewhere
        self.ceilings = ceilings
        for vhost in self.vhosts.values():
            vhost.ceilings = ceilings

    def add_vhost(self, name: str, metadata: Metadata | None = None) -> VHost:
        """Add a vhost with its predeclared exchanges, or return the existing one."""
        vhost = self.vhosts.get(name)
        if vhost is None:
            self.ceilings.check_vhost(name)
            vhost = self._made(name)
            vhost.set_metadata(metadata or Metadata())
            self.vhosts[name] = vhost
            facts = {
                "name": name,
                "description": vhost.metadata.description,
                "tags": vhost.metadata.tags,
            }
            self.events.note("vhost.created", facts)
            self.vhost_added(vhost)
        return vhost

    def delete_vhost(self, vhost: VHost, before_event: Callable[[], None] = lambda: None) -> None:
        """Delete a vhost and everything in it; its connections must be closed before.

        Args:
            vhost: what is deleted.
            before_event: called before the event of its end, for events of what ends with it.

        Raises:
            HarebellError: the store refuses a part of that; nothing was changed.
        """
        # First, as it is what the store may refuse.
        vhost.delete()
        if "branches" in vars(self):
            self.branches.vhost_gone(vhost.name)
        self.staging.vhost_gone(vhost.name)
        self.stages.vhost_gone(vhost.name)
        self.publishers.vhost_gone(vhost.name)
        before_event()
        self.events.note("vhost.deleted", {"name": vhost.name})
        del self.vhosts[vhost.name]

    def _take_in(self, name: str) -> VHost:
        vhost = self.vhosts[name] = self._made(name)
        return vhost

    def _made(self, name: str) -> VHost:
        vhost = VHost(
            name,
            self.store,
            self._editor,
            self.clock,
            self._awaiting,
            self._chooser,
            self.timers,
            self.events,
            self.histories,
        )
        vhost.broker_queue_type = self.default_queue_type
        vhost.ceilings = self.ceilings
        vhost.churn = self.churn
        vhost.share_counts(self.delivery_counts, self.letter_counts)
        return vhost

    def restore(self) -> list[str]:
        """Restore everything durable; called once, before the first connection.

        Returns:
            A log line for each thing that could not be restored.

        Raises:
            StoreError: the definitions contain something unknown to this version.
        """
        for (name,), row in self.store.definitions.load("vhost"):
            vhost = self.vhosts.get(name) or self._take_in(name)
            try:
                vhost.take_metadata(metadata_of(row))
            except MetadataError as error:
                raise StoreError(f"the metadata of vhost '{name}' are damaged: {error}") from None
        # Before the exchanges, which get their policy when they are added.
        restore_policies(
            lambda name: (self.vhosts.get(name) or self._take_in(name)).policies, self.store
        )
        restore_parameters(
            lambda name: (self.vhosts.get(name) or self._take_in(name)).parameters, self.store
        )
        self.global_parameters.restore()
        # Before the queues: rows of a batch that was not committed are in no queue.
        self.publishers.restore()
        self.stages.restore(self._next_batch)
        for vhost_name, exchange in restored_exchanges(self.store):
            (self.vhosts.get(vhost_name) or self._take_in(vhost_name)).add_exchange(exchange)
        for queue in restored_queues(self.store):
            (self.vhosts.get(queue.vhost) or self._take_in(queue.vhost)).take_back(queue)
        lost = self.histories.restore(
            [queue for each in self.vhosts.values() for queue in each.queues.values()]
        )
        # Both ends of a binding have to exist.
        lost += restore_bindings(self.vhosts, self.store)
        # Before the queues are configured: a message that a branch or a claim holds must not expire
        # or be dropped by a limit first.
        log = self._branch_log = self.store.open_log(BRANCH_LOG, durable=True, keep_all=True)
        if log.first() < log.end():
            lost += self.branches.restore()
        if any(self.store.definitions.load("lease")):
            lost += self.leases.restore()
        self.jobs.restore()
        for vhost in self.vhosts.values():
            vhost.policies.apply_all()
        return lost

    def _next_batch(self, key: Key) -> int | None:
        """Return the smallest batch number that a publisher can commit; None for an unknown one."""
        entry = self.publishers.find(key)
        return None if entry is None else entry.next

    def hand_over_publishers(self, entries: list[Entry], user: str) -> None:
        """Give publishers to another user; what is staged for them is dropped.

        Raises:
            Refusal: as of `Publishers.hand_over`.
        """
        keys = [entry.key for entry in entries]
        self.publishers.hand_over(entries, user)
        self.stages.drop_all(*keys)

    def forget_publishers(self, entries: list[Entry]) -> None:
        """Remove publishers with what is staged for them; all of them or none.

        Raises:
            Refusal: RESOURCE_LOCKED, one is in use.
        """
        for entry in entries:
            check_idle(entry)
        self.stages.drop_all(*[entry.key for entry in entries])
        for entry in entries:
            self.publishers.forget(entry.key)

    def tick(self) -> None:
        """Do periodic work, about twice a second."""
        # What expires in a tick is no act of the user whose input came last.
        self.events.actor = INTERNAL_USER
        self.timers.run()
        if self._awaiting:
            self.committed()
        piece = next(self._ticking, None)
        if piece is None:
            self._ticking = self._ticking_pieces()
            piece = next(self._ticking, ())
        for queue in piece:
            if not queue.deleted:
                self.failures.guard(queue.tick)
        if self.events.waiting:
            self.failures.guard(self.events.publish)

    def end(self) -> None:
        """Store what the next start needs of exchanges: nothing is published any more."""
        for vhost in self.vhosts.values():
            for exchange in vhost.exchanges.values():
                if exchange.tap is not None:
                    exchange.tap.end()

    def _ticking_pieces(self) -> Iterator[Sequence[Queue]]:
        """Yield the queues that have periodic work, some for each tick."""
        queues = [queue for vhost in self.vhosts.values() for queue in vhost.ticking.values()]
        for start in range(0, len(queues), QUEUES_PER_TICK):
            yield queues[start : start + QUEUES_PER_TICK]

    def committed(self) -> None:
        """Continue with everything that waited for the commit."""
        # The list is emptied and not replaced: queues and exchanges have this very list.
        waiting = self._awaiting[:]
        self._awaiting.clear()
        for queue in waiting:
            # After an error it is called again with the next commit: messages wait in it.
            if not self.failures.guard(queue.committed) and queue not in self._awaiting:
                self._awaiting.append(queue)

    def weaker(self) -> list[str]:
        """Return the vhosts and policies whose confirms do not wait for a sync."""
        durabilities = []
        for _, vhost in sorted(self.vhosts.items()):
            durabilities.append((f"vhost '{vhost.name}'", vhost.metadata.durability))
            for name, policy in sorted(vhost.policies.policies.items()):
                word = policy.definition.get("durability", "")
                durabilities.append((f"policy '{name}' in vhost '{vhost.name}'", word))
        return [f"{owner} ({word})" for owner, word in durabilities if word not in ("", FSYNC)]

    def totals(self) -> dict[str, int]:
        """Return counts over all vhosts: queues, consumers, messages ready and unacknowledged."""
        queues = [queue for vhost in self.vhosts.values() for queue in vhost.queues.values()]
        return {
            "queues": len(queues),
            "exchanges": sum(len(vhost.exchanges) for vhost in self.vhosts.values()),
            "consumers": sum(len(queue.consumers) for queue in queues),
            "messages_ready": sum(queue.ready_count() for queue in queues),
            "messages_unacknowledged": sum(queue.unacked for queue in queues),
            "messages_leased": sum(queue.leased for queue in queues),
        }
