"""Whose turn it is among the consumers of a queue.

Consumers of equal priority take turns; higher ones come first as long as they are ready. With a
single active consumer the others wait until it goes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.model.consumer import Consumer
from harebell.model.queue.arguments import SINGLE_ACTIVE
from harebell.model.queue.kind import Queue
from harebell.model.resource import refused, rendered


class TakingTurns(Queue):
    """A queue whose consumers take turns.

    Args:
        name: its name.
        vhost: the name of its vhost.
        **options: as for `Queue`.
    """

    PREEMPTS = False
    """Whether a consumer of higher priority takes over from the single active one."""

    def __init__(self, name: str, vhost: str, **options: Any) -> None:
        super().__init__(name, vhost, **options)
        self._turn = 0
        self._ranked = False
        self._single = self.arguments.get(SINGLE_ACTIVE) is True
        self._preempts = self.PREEMPTS
        self._active: Consumer | None = None

    def check_consumer(
        self,
        tag: str,
        arguments: Mapping[str, Any],
        *,
        no_ack: bool,
        exclusive: bool,
        prefetch: int,
    ) -> bool:
        """Refuse an exclusive consumer where there may be others that wait for their turn."""
        if exclusive and self._single:
            raise refused(f"{rendered('queue', self.name, self.vhost)} in exclusive use")
        return exclusive

    def add_consumer(self, consumer: Consumer) -> None:
        """Serve a new consumer after those of the same priority, and before lower ones."""
        self._rewind()
        at = len(self.consumers)
        while at and self.consumers[at - 1].priority < consumer.priority:
            at -= 1
        self.consumers.insert(at, consumer)
        self.had_consumers = True
        self._consumers_changed()
        self.drain()

    def remove_consumer(self, consumer: Consumer) -> None:
        """Serve a consumer no longer."""
        self._rewind()
        try:
            self.consumers.remove(consumer)
        except ValueError:
            return
        if consumer is self._active:
            self._active = None
        self._consumers_changed()

    def _consumers_changed(self) -> None:
        """Find out whether it matters who is who, and who is the one if there is only one."""
        consumers = self.consumers
        self._ranked = self._single or bool(
            consumers and consumers[0].priority != consumers[-1].priority
        )
        if self._single and self._active is None and consumers:
            self._active = consumers[0]

    def _rewind(self) -> None:
        """Put first whose turn it is, so that coming and going does not change whose it is."""
        turn, self._turn = self._turn, 0
        if turn and not self._ranked:
            self.consumers[:] = self.consumers[turn:] + self.consumers[:turn]

    def _pick(self) -> Consumer | None:
        """The consumer whose turn it is among those that are ready."""
        if self._ranked:
            return self._pick_ranked()
        count = len(self.consumers)
        turn = self._turn
        for _ in range(count):
            if turn >= count:
                turn = 0
            consumer = self.consumers[turn]
            turn += 1
            if consumer.ready():
                self._turn = turn
                return consumer
        return None

    def pick_active(self) -> Consumer | None:
        """The single active consumer if it is ready.

        Where it can be replaced by one of higher priority it gets nothing more until it has
        settled what it has; then the other one is active.
        """
        active = self._active
        if active is None:
            return None
        if self._preempts:
            first = self.consumers[0]
            if first.priority > active.priority:
                if active.unacked:
                    return None
                active = self._active = first
        return active if active.ready() else None

    def _pick_ranked(self) -> Consumer | None:
        """The first ready consumer in order of priority; it goes behind its equals."""
        if self._single:
            return self.pick_active()
        for at, consumer in enumerate(self.consumers):
            if consumer.ready():
                last = at
                while (
                    last + 1 < len(self.consumers)
                    and self.consumers[last + 1].priority == consumer.priority
                ):
                    last += 1
                self.consumers.insert(last + 1, consumer)
                del self.consumers[at]
                return consumer
        return None
