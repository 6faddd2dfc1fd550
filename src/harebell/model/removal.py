"""Deletion in slices, for objects with many bindings and for many queues.

    unbind_some(resource)   before a queue or an exchange is deleted: remove most of its bindings
    drop(resource)          delete an unused one at once, or after its bindings
    drop_all(queues)        delete the exclusive queues of a closed connection; the names are free
    emptied(...)            delete what is in a vhost, before the vhost is deleted

A queue of a closed connection is no longer found, so its name can be declared again at once. While
it is still bound it takes messages, which are deleted with it. All other objects can be found and
used until they are deleted: a crash leaves them with fewer bindings, as after that many
`queue.unbind`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from functools import partial
from itertools import islice

from harebell.base.slices import Slices, steps
from harebell.base.work import Work
from harebell.model.binding import Binding
from harebell.model.events import Events
from harebell.model.exchange import Exchange
from harebell.model.limits import REMOVED_AT_ONCE, REMOVED_BINDING_UNITS, REMOVED_QUEUE_UNITS
from harebell.model.queue.contract import Queue

_TAKEN_AT_ONCE = 256
"""Bindings per lookup: finding the first key of a dictionary is slow after many removals."""


def _count(resource: Queue | Exchange) -> int:
    """Return how many bindings it has."""
    count = len(resource.bound or ())
    return count + len(resource.bindings) if isinstance(resource, Exchange) else count


class Removal:
    """Deletes objects and removes their bindings, within the work budget of a turn.

    Args:
        unbind: removes a binding; an auto-delete source is deleted with its last one.
        delete: deletes a queue or an exchange with its remaining bindings, unless it is deleted.
        work: the work budget.
        events: the events of the broker.
    """

    def __init__(
        self,
        unbind: Callable[[Binding], object],
        delete: Callable[[Queue | Exchange], object],
        work: Work,
        events: Events,
    ) -> None:
        self._unbind = unbind
        self._delete = delete
        self._work = work
        self._events = events

    def unbind_some(self, resource: Queue | Exchange) -> bool:
        """Remove bindings from and to an object in this turn; True when only a few are left."""
        while _count(resource) > REMOVED_AT_ONCE:
            bindings = resource.bound
            if isinstance(resource, Exchange) and resource.bindings:
                bindings = resource.bindings
            for binding in [*islice((bindings or {}).values(), _TAKEN_AT_ONCE)]:
                self._unbind(binding)
                if self._work.charge(REMOVED_BINDING_UNITS):
                    return False
        return True

    def drop(self, resource: Queue | Exchange) -> None:
        """Delete an unused object; with many bindings, after they are removed."""
        if _count(resource) <= REMOVED_AT_ONCE:
            self._delete(resource)
        else:
            self._later([resource])

    def drop_all(self, queues: Collection[Queue]) -> None:
        """Delete the queues of a closed connection."""
        few = len(queues) <= REMOVED_AT_ONCE
        if few and sum(map(_count, queues), len(queues)) <= REMOVED_AT_ONCE:
            for queue in queues:
                self._delete(queue)
        else:
            self._later(queues)

    def emptied(self, resources: list[Queue | Exchange], exchanges: list[Exchange]) -> Slices[None]:
        """Delete what is in a vhost, unless it is little.

        Args:
            resources: what is deleted, queues behind exchanges: so no exchange takes what they had.
            exchanges: all of the vhost; those that are not deleted only lose bindings.
        """
        if len(resources) + sum(len(each.bindings) for each in exchanges) <= REMOVED_AT_ONCE:
            return
        yield from steps(partial(self._some_of, deque(resources)))
        for exchange in exchanges:
            if exchange.bindings:
                yield from steps(partial(self.unbind_some, exchange))

    def _later(self, resources: Iterable[Queue | Exchange]) -> None:
        waiting = deque(resources)
        events = self._events
        actor = events.actor

        def step() -> bool:
            # The events name the user of the deletion, not that of the present turn.
            before, events.actor = events.actor, actor
            try:
                return self._some_of(waiting)
            finally:
                events.actor = before
                if events.waiting:
                    events.publish()

        self._work.later(step)

    def _some_of(self, resources: deque[Queue | Exchange]) -> bool:
        """Remove a slice of the bindings; True when all are removed."""
        while resources:
            if not self.unbind_some(resources[0]):
                return False
            self._delete(resources.popleft())
            if self._work.charge(REMOVED_QUEUE_UNITS):
                break
        return not resources
