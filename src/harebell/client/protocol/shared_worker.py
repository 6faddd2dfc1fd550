"""The workers of both APIs, written once: a handler for each message, and what errors of it do.

A message is acknowledged when its handler has returned. An error of the handler is logged, and its
message rejected, requeued or acknowledged as `on_error` says. The shells call the handlers: tasks
under asyncio, the calling thread or several threads in the blocking API.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Generic, get_args

from harebell.client.errors import AMQPError
from harebell.client.protocol.inbox import Inbox
from harebell.client.protocol.shared_channel import DeliveryT, OnError, Outcome
from harebell.client.protocol.shared_consumer import Channel, SharedDelivery
from harebell.client.protocol.waits import Steps, Until

_OUTCOMES = get_args(Outcome)


class SharedWorker(Generic[DeliveryT]):
    """A worker of either API: get one from `Channel.handle`.

    Args:
        channel: an open one, that it consumes on.
        queue: the name of the queue.
        handler: takes a message.
        options: of basic.consume: tag, no_ack, exclusive, arguments.
        prefetch: maximum number of unacknowledged messages; None stands for `concurrency`.
        concurrency: maximum number of handlers that run at a time.
        on_error: what becomes of a message whose handler has failed.
        idle_seconds: maximum time without a message; None waits without limit.

    Attributes:
        running: number of handlers that run now.
        handled: number of handlers that have returned.
        failed: number of handlers that have failed.
    """

    def __init__(
        self,
        channel: Channel,
        queue: str,
        handler: Callable[[DeliveryT], Any],
        options: Mapping[str, Any],
        prefetch: int | None,
        concurrency: int,
        on_error: OnError,
        idle_seconds: float | None,
    ) -> None:
        if not callable(handler):
            raise TypeError(f"a handler is a function that takes a message, not {handler!r}")
        if inspect.isgeneratorfunction(handler) or inspect.isasyncgenfunction(handler):
            raise TypeError(f"{handler!r} is a generator: calling it would run nothing of it")
        if concurrency < 1:
            raise ValueError(f"concurrency is at least 1, not {concurrency!r}")
        if not callable(on_error):
            checked_outcome(on_error)
        self.queue = queue
        self.concurrency = concurrency
        self.running = 0
        self.handled = 0
        self.failed = 0
        self._handler = handler
        self._on_error = on_error
        self._idle_seconds = idle_seconds
        self._connection = channel.connection
        self._begun = False
        self._stopping = False
        self._fault: Exception | None = None
        self._consumer = channel.consumer_type(
            channel, queue, options, concurrency if prefetch is None else prefetch, None
        )

    def __repr__(self) -> str:
        """Return the queue, and how much was done, for people."""
        counts = f"{self.running} running, {self.handled} handled, {self.failed} failed"
        return f"<{type(self).__name__} of queue {self.queue!r}, {counts}>"

    @property
    def _inbox(self) -> Inbox:
        """The deliveries that no handler has yet."""
        inbox: Inbox = self._consumer.inbox
        return inbox

    def _begin(self) -> None:
        if self._begun:
            raise RuntimeError("a worker runs once: get another one from handle()")
        self._begun = True

    def _next(self) -> Steps[DeliveryT | None]:
        """Wait for a message and for room to handle it; None at the end."""
        inbox = self._inbox
        while not self._stopping:
            room = self.running < self.concurrency
            if room and inbox.items and not self._connection.recovering:
                message: DeliveryT = self._consumer.take()
                return message
            if inbox.ended and not inbox.items:
                inbox.check()
                break
            in_time = yield Until(inbox.expect(), self._idle_seconds if room else None)
            if not in_time and room and not inbox.items and not inbox.ended:
                break
        return None

    def _succeeded(self, message: Any) -> None:
        """Acknowledge a message, unless its handler has settled it."""
        self.handled += 1
        self._settle(message, "ack")

    def _failed(self, message: Any, error: Exception) -> None:
        """Settle a message whose handler has failed."""
        self.failed += 1
        outcome: Outcome = "requeue"
        try:
            policy = self._on_error
            outcome = checked_outcome(policy(message, error) if callable(policy) else policy)
        except Exception as fault:
            # Without a policy nothing may be lost, and nothing repeated without end.
            self._fault = fault
            self.stop()
        if outcome == "requeue_once":
            outcome = "reject" if message.redelivered else "requeue"
        self._connection.reports.handler_failed(self.queue, message, outcome, error)
        self._settle(message, outcome)

    def _settle(self, message: Any, outcome: Outcome) -> None:
        if outcome != "ack":
            message.give_up(requeue=outcome == "requeue")
        elif not message.settled:
            try:
                SharedDelivery.ack.function(message)
            except AMQPError as error:
                self._connection.reports.not_settled(self.queue, message, error)

    def _check(self) -> None:
        """Raise the error of `on_error`, if it had one."""
        if self._fault is not None:
            raise self._fault

    def stop(self) -> None:
        """Let the worker end: it takes no further message, and running handlers end."""
        self._stopping = True
        self._wake()

    def _wake(self) -> None:
        """Let `_next` look again."""
        raise NotImplementedError


def checked_outcome(outcome: Any) -> Outcome:
    """Return what is to become of a message.

    Raises:
        ValueError: there is no such outcome.
    """
    if outcome not in _OUTCOMES:
        raise ValueError(f"on_error is {', '.join(_OUTCOMES)} or a function, not {outcome!r}")
    return outcome  # type: ignore[no-any-return]
