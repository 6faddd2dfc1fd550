"""What goes with many bindings, or many at a time, goes in slices.

    unbind_some(thing)      before a queue or an exchange is deleted: its bindings, most of them now
    drop(thing)             one that nobody uses any more: at once, or its bindings first
    drop_all(queues)        the exclusive queues of a connection that ended; their names are free

A queue whose connection ended is no longer found, so its name can be declared again at once. What
is still bound takes messages until it is its turn; they go with it. Everything else is found, and
can be used, until it is deleted: a crash leaves it with fewer bindings, or none, as it would have
been after the same number of `queue.unbind`.
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
"""Bindings that are looked up together: a dictionary that is emptied has gaps at its front."""


def _count(thing: Queue | Exchange) -> int:
    """How many bindings it has."""
    count = len(thing.bound or ())
    return count + len(thing.bindings) if isinstance(thing, Exchange) else count


class Removal:
    """Deletes what goes, and removes bindings, as much as there is time for in a turn.

    Args:
        unbind: removes a binding, and its source if that was the last one and it goes with it.
        delete: deletes a queue or an exchange with the bindings that are left, unless it is gone.
        work: counts what is done.
        events: of the broker.
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
        """Remove bindings to it, and those from it, in this turn; True when only a few are left."""
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
        """Delete what goes by itself; with many bindings not before they are gone."""
        if _count(thing) <= REMOVED_AT_ONCE:
            self._delete(thing)
        else:
            self._later([thing])

    def drop_all(self, queues: Collection[Queue]) -> None:
        """Delete the queues of an owner that is gone."""
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
                    events.tell()

        self._work.later(step)

    def _some_of(self, things: deque[Queue | Exchange]) -> bool:
        """A slice; True when all are gone."""
        while things:
            if not self.unbind_some(things[0]):
                return False
            self._delete(things.popleft())
            if self._work.charge(REMOVED_QUEUE_UNITS):
                break
        return not things
