"""The parts of vhost and broker that queues and exchanges use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harebell.base.bcc import further_keys, revealed
from harebell.base.chooser import Chooser
from harebell.base.clock import Clock
from harebell.base.histogram import DELIVERY_COUNTS, Histogram
from harebell.base.message import Message
from harebell.base.ports import Store
from harebell.base.timers import Timers
from harebell.model.dead_letter import DeadLetters
from harebell.model.dead_letter_counts import DeadLetterCounts
from harebell.model.dead_letter_scheduler import DeadLetterScheduler
from harebell.model.editor import Editor
from harebell.model.queue.contract import Queue
from harebell.model.router import Router


class QueueContext:
    """The parts that the queues and exchanges of one vhost share.

    Args:
        router: the router of the vhost.
        editor: reads and changes messages.
        clock: wall clock and monotonic clock.
        awaiting: queues that wait for the next commit; shared by the broker.
        chooser: makes random choices; shared by the broker.
        store: opens the logs of exchanges that keep messages.
        timers: the timers of the broker; None for no timers.

    Attributes:
        letters: the dead-letter scheduler.
        delivery_counts: failed deliveries of messages, in queues that were deleted; shared by the
            broker.
        letter_counts: counts dead letters; shared by the broker.
        drop_queue: deletes a queue without checks; the vhost sets it.
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
        self.delivery_counts = Histogram(DELIVERY_COUNTS)
        self.letter_counts = DeadLetterCounts()
        self.letters = DeadLetterScheduler(self.timers)
        router.work = self.timers.work

    def route_again(self, message: Message, queues: tuple[Queue, ...]) -> tuple[Queue, ...]:
        """Route a published message by all of its keys; it carries what exchanges hear of it then.

        Args:
            message: a message that was routed before.
            queues: what to return if its exchange was deleted.
        """
        exchange = self.router.exchanges.get(message.exchange)
        if exchange is None:
            message.once = None
            return queues
        # With the BCC keys that were hidden from queues, as they are routing keys, too.
        whole = revealed(message)
        whole.once = None
        keys = further_keys(self.editor.headers_of(whole)) if whole.has_headers else []
        route_again = self.router.walk(exchange, whole, keys)
        message.once = whole.once
        return route_again

    def dead_letters_of(self, queue: Queue, settings: Mapping[str, Any]) -> DeadLetters | None:
        """Return the dead-letter settings of a queue; None if it has no dead-letter exchange.

        Args:
            queue: a queue whose dead letters go somewhere.
            settings: its effective settings.
        """
        exchange = settings.get("dead-letter-exchange")
        if not isinstance(exchange, str):
            return None
        key = settings.get("dead-letter-routing-key")
        return DeadLetters(
            queue.name,
            exchange,
            key,
            self.router,
            self.editor,
            self.clock,
            self.letters,
            self.letter_counts,
            queue.kind,
        )
