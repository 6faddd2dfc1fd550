"""What a queue or an exchange may use of the vhost and the broker that it is part of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harebell.base.chooser import Chooser
from harebell.base.clock import Clock
from harebell.base.ports import Store
from harebell.base.timers import Timers
from harebell.model.dead_letter import DeadLetters
from harebell.model.dead_letter_scheduler import DeadLetterScheduler
from harebell.model.editor import Editor
from harebell.model.queue.contract import Queue
from harebell.model.router import Router


class QueueContext:
    """What the queues and exchanges of one vhost share.

    Args:
        router: of the vhost.
        editor: looks into messages and changes them.
        clock: the time of day.
        awaiting: queues that want to know of the next commit; the broker's.
        chooser: chooses at random; the broker's.
        store: opens the logs of exchanges that keep messages.
        timers: of the broker; without them nothing is woken.

    Attributes:
        letters: dead letters that are published one after the other.
        drop_queue: deletes a queue without asking; the vhost sets it.
    """

    drop_queue: Callable[[Queue], object]

    def __init__(
        self,
        router: Router,
        editor: Editor,
        clock: Clock,
        awaiting: list[Queue],
        chooser: Chooser | None = None,
        store: Store | None = None,
        timers: Timers | None = None,
    ) -> None:
        self.router = router
        self.editor = editor
        self.clock = clock
        self.awaiting = awaiting
        self.chooser = Chooser() if chooser is None else chooser
        self.store = store
        self.timers = Timers(clock) if timers is None else timers
        self.letters = DeadLetterScheduler(self.timers)
        router.work = self.timers.work

    def dead_letters_of(self, queue: Queue, settings: Mapping[str, Any]) -> DeadLetters | None:
        """Where a queue's dead messages go; None when nobody asked for that.

        Args:
            queue: the queue.
            settings: those in effect for it.
        """
        exchange = settings.get("dead-letter-exchange")
        if not isinstance(exchange, str):
            return None
        key = settings.get("dead-letter-routing-key")
        return DeadLetters(
            queue.name, exchange, key, self.router, self.editor, self.clock, self.letters
        )
