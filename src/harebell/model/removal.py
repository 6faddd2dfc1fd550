"""Deletion in slices, for objects with many bindings and for many queues.

    unbind_some(thing)      before a queue or an exchange is deleted: remove most of its bindings
    drop(thing)             delete an unused one at once, or after its bindings
    drop_all(queues)        delete the exclusive queues of a closed connection; the names are free

A queue of a closed connection is no longer found, so its name can be declared again at once. While
it is still bound it takes messages, which are deleted with it. All other objects can be found and
used until they are deleted: a crash leaves them with fewer bindings, as after that many
`queue.unbind`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable
from itertools import islice

from harebell.base.limits import (
    REMOVED_AT_ONCE,
    REMOVED_BINDING_UNITS,
    REMOVED_QUEUE_UNITS,
)
from harebell.base.work import Work
from harebell.model.binding import Binding
from harebell.model.events import Events
from harebell.model.exchange import Exchange
from harebell.model.queue.contract import Queue

_TAKEN_AT_ONCE = 256
"""Bindings per lookup: finding the first key of a dictionary is slow after many removals."""


def _count(thing: Queue | Exchange) -> int:
    """Return how many bindings it has."""
    count = len(thing.bound or ())
    return count + len(thing.bindings) if isinstance(thing, Exchange) else count


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

    def unbind_some(self, thing: Queue | Exchange) -> bool:
        """Remove bindings from and to an object in this turn; True when only a few are left."""
        while _count(thing) > REMOVED_AT_ONCE:
            bindings = thing.bound
            if isinstance(thing, Exchange) and thing.bindings:
                bindings = thing.bindings
            for binding in [*islice((bindings or {}).values(), _TAKEN_AT_ONCE)]:
                self._unbind(binding)
                if self._work.charge(REMOVED_BINDING_UNITS):
                    return False
        return True

    def drop(self, thing: Queue | Exchange) -> None:
        """Delete an unused object; with many bindings, after they are removed."""
        if _count(thing) <= REMOVED_AT_ONCE:
            self._delete(thing)
        else:
            self._later([thing])

    def drop_all(self, queues: Collection[Queue]) -> None:
        """Delete the queues of a closed connection."""
        few = len(queues) <= REMOVED_AT_ONCE
        if few and sum(map(_count, queues), len(queues)) <= REMOVED_AT_ONCE:
            for queue in queues:
                self._delete(queue)
        else:
            self._later(queues)

    def _later(self, things: Iterable[Queue | Exchange]) -> None:
        waiting = deque(things)
        events = self._events
        actor = events.actor

        def step() -> bool:
            before, events.actor = events.actor, actor
            try:
                return self._some_of(waiting)
            finally:
                events.actor = before
                if events.waiting:
                    events.publish()

        self._work.later(step)

    def _some_of(self, things: deque[Queue | Exchange]) -> bool:
        """Remove a slice of the bindings; True when all are removed."""
        while things:
            if not self.unbind_some(things[0]):
                return False
            self._delete(things.popleft())
            if self._work.charge(REMOVED_QUEUE_UNITS):
                break
        return not things
