"""Workers of the blocking API: handlers in the calling thread, or in several threads."""

from __future__ import annotations

import inspect
import socket
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

from harebell.client.blocking.consumer import Delivery
from harebell.client.blocking.driver import run
from harebell.client.protocol.shared_consumer import Channel
from harebell.client.protocol.shared_worker import SharedWorker

_BELLS_BYTES = 4096


class Worker(SharedWorker[Delivery]):
    """Calls a handler with each message of a queue. Get one from `Channel.handle`.

    With a concurrency of 1 the thread that calls `run` also calls the handler, which may use the
    connection. With more, handlers run in threads of their own, and must not use it, nor settle
    messages: that is done by the thread of `run`, which also sends heartbeats meanwhile.
    """

    _bell: socket.socket | None = None

    def __init__(
        self, channel: Channel, queue: str, handler: Callable[[Delivery], Any], *options: Any
    ) -> None:
        if inspect.iscoroutinefunction(handler):
            raise TypeError(f"{handler!r} is a coroutine function: these are for the asyncio API")
        super().__init__(channel, queue, handler, *options)

    def run(self) -> None:
        """Handle messages until `stop()`, the idle time or the end of the subscription.

        At the end running handlers end, and prefetched messages are requeued.

        Raises:
            AMQPError: the subscription, the channel or the connection has ended.
        """
        self._begin()
        heard, bell = socket.socketpair()
        with heard, bell:
            heard.setblocking(False)
            bell.setblocking(False)
            self._bell = bell
            self._done: deque[tuple[Delivery, Future[None]]] = deque()
            with self._connection.listening(heard.fileno(), partial(self._rung, heard)):
                if self.concurrency == 1:
                    self._run_here()
                else:
                    self._run_in_threads()
            self._bell = None
        self._check()

    def _run_here(self) -> None:
        with self._consumer:
            while (message := run(self._connection, self._next())) is not None:
                self.running = 1
                try:
                    self._call(message)
                except Exception as error:
                    self._failed(message, error)
                except BaseException:
                    message.give_up(requeue=True)
                    raise
                else:
                    self._succeeded(message)
                finally:
                    self.running = 0

    def _run_in_threads(self) -> None:
        try:
            with ThreadPoolExecutor(self.concurrency, "harebell-handler") as pool:
                with self._consumer:
                    while (message := run(self._connection, self._next())) is not None:
                        self.running += 1
                        self._submit(pool, message)
                while self.running:
                    self._connection.pump(None)
        finally:
            self._collect()

    def _submit(self, pool: ThreadPoolExecutor, message: Delivery) -> None:
        future = pool.submit(self._call, message)

        def ended(future: Future[None]) -> None:
            self._done.append((message, future))
            self._wake()

        future.add_done_callback(ended)

    def _call(self, message: Delivery) -> None:
        answer: Any = self._handler(message)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise TypeError("the handler returned a coroutine: these are for the asyncio API")

    def _rung(self, heard: socket.socket) -> None:
        """Handle that a handler has ended, or that the worker is to end."""
        heard.recv(_BELLS_BYTES)
        self._collect()
        self._inbox.wake()

    def _collect(self) -> None:
        """Settle the messages whose handlers have ended."""
        while self._done:
            message, future = self._done.popleft()
            self.running -= 1
            error = future.exception()
            if error is None:
                self._succeeded(message)
            elif isinstance(error, Exception):
                self._failed(message, error)
            else:
                message.give_up(requeue=True)
                raise error

    def _wake(self) -> None:
        """Wake the thread of `run`, from any thread."""
        bell = self._bell
        if bell is not None:
            # Full, it has been rung often enough; closed, the worker has ended.
            with suppress(OSError):
                bell.send(b"\0")
