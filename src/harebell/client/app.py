"""An application of typed handlers, for asyncio.

    app = App("amqp://localhost", wait=30)

    @app.subscriber("orders", concurrency=10, on_error="requeue_once")
    async def store(order: Order) -> None: ...

    asyncio.run(app.run())

A handler has a parameter for the body, which is decoded as the parameter's type, and may have one
of type `Delivery` for the message. What it returns answers a request (`connection.requester()`).
"""

from __future__ import annotations

import asyncio
import inspect
import signal
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from harebell.client.aio import Channel, Connection, Delivery, Worker, connect
from harebell.client.codecs import TEXT, Codec, Json
from harebell.client.message import Message
from harebell.client.protocol.shared_channel import OnError
from harebell.client.url import URL

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class _Subscriber:
    """A handler, and how its queue is consumed."""

    queue: str
    call: Callable[[Delivery], Any]
    codec: Callable[[Any], Codec[Any]]
    declare: Mapping[str, Any] | None
    options: dict[str, Any]


class App:
    """Typed handlers of queues, on one connection.

    Args:
        url: the address.
        options: of `aio.connect`: wait, version, recover and so on; `recover` is True unless given.
    """

    def __init__(self, url: str | URL = "amqp://", **options: Any) -> None:
        self.url = url
        self._options = {"recover": True, **options}
        self._subscribers: list[_Subscriber] = []
        self._stack: AsyncExitStack | None = None
        self._workers: list[Worker] = []
        self._channel: Channel | None = None
        self._over = asyncio.Event()

    def __repr__(self) -> str:
        """Return the queues, and whether it runs, for people."""
        queues = ", ".join(repr(each.queue) for each in self._subscribers)
        return f"<App of {queues or 'no queue'}, {'runs' if self._channel else 'does not run'}>"

    def subscriber(
        self,
        queue: str,
        *,
        concurrency: int = 1,
        on_error: OnError = "reject",
        prefetch: int | None = None,
        arguments: Mapping[str, Any] | None = None,
        codec: Callable[[Any], Codec[Any]] = Json,
        declare: Mapping[str, Any] | None = None,
    ) -> Callable[[F], F]:
        """Have a function handle the messages of a queue; the function itself is not changed.

        Args:
            queue: its name.
            concurrency: maximum number of handlers that run at a time.
            on_error: what becomes of a message whose handler has failed, or whose body is of
                another type (`Channel.handle`).
            prefetch: maximum number of unacknowledged messages; None stands for `concurrency`.
            arguments: for example {"x-priority": 10}.
            codec: makes the codec of a type: `Json` or `MessagePack`.
            declare: declares the queue with these arguments of `declare_queue`; without it the
                queue has to exist.

        Raises:
            TypeError: the function has other parameters, or a type that cannot be decoded.
        """
        options = {
            "concurrency": concurrency,
            "on_error": on_error,
            "prefetch": prefetch,
            "arguments": arguments,
        }

        def add(function: F) -> F:
            call = typed(function, codec)
            self._subscribers.append(_Subscriber(queue, call, codec, declare, options))
            return function

        return add

    @property
    def channel(self) -> Channel:
        """A channel to publish on, while it runs.

        Raises:
            RuntimeError: it does not run.
        """
        if self._channel is None:
            raise RuntimeError("the app does not run: enter it, or call run()")
        return self._channel

    async def run(self) -> None:
        """Connect and handle messages until `stop()` or SIGTERM; running handlers end first.

        Raises:
            AMQPError: there is no connection, a queue is missing, or a subscription has ended.
        """
        loop = asyncio.get_running_loop()
        # Only the main thread may handle signals.
        with suppress(RuntimeError, ValueError):
            loop.add_signal_handler(signal.SIGTERM, self.stop)
        try:
            async with self:
                await self._over.wait()
        finally:
            loop.remove_signal_handler(signal.SIGTERM)

    def stop(self) -> None:
        """Let `run` end."""
        self._over.set()

    async def __aenter__(self) -> Self:
        if self._stack is not None:
            raise RuntimeError("the app runs already")
        self._workers = []
        async with AsyncExitStack() as stack:
            connection = await stack.enter_async_context(connect(self.url, **self._options))
            for each in self._subscribers:
                await stack.enter_async_context(await self._worker(connection, each))
            self._channel = await connection.channel()
            self._stack = stack.pop_all()
        return self

    async def _worker(self, connection: Connection, each: _Subscriber) -> Worker:
        """Return the worker of a handler, on a channel of its own."""
        channel = await connection.channel()
        if each.declare is not None:
            await channel.declare_queue(each.queue, **each.declare)

        async def handle(message: Delivery) -> None:
            answer = each.call(message)
            if inspect.isawaitable(answer):
                answer = await answer
            if answer is not None and message.reply_to:
                reply = Message.of(
                    answer, each.codec(Any), correlation_id=message.correlation_id or ""
                )
                await channel.publish(reply, routing_key=message.reply_to)

        worker = channel.handle(each.queue, handle, **each.options)
        worker.on_end = self.stop
        self._workers.append(worker)
        return worker

    async def __aexit__(self, *error: Any) -> None:
        assert self._stack is not None, "left before it was entered"
        stack, self._stack, self._channel = self._stack, None, None
        for worker in self._workers:
            worker.stop()
        try:
            await stack.__aexit__(*error)
        finally:
            self._over.clear()


def typed(function: Callable[..., Any], codec: Callable[[Any], Codec[Any]]) -> Any:
    """Return a handler that takes a message and gives a function what it asks for.

    Args:
        function: has a parameter for the body, one of type `Delivery`, or both.
        codec: makes the codec of the body's type; bytes and str have none.

    Raises:
        TypeError: the function has other parameters, or a type that cannot be decoded.
    """
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{function!r} is a generator: calling it would run nothing of it")
    readers: dict[str, Callable[[Delivery], Any]] = {}
    bodies = []
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        kind = parameter.annotation
        if kind is Delivery:
            readers[name] = _itself
        elif parameter.default is parameter.empty:
            bodies.append(name)
            readers[name] = _reader(Any if kind is parameter.empty else kind, codec)
        if name in readers and parameter.kind is not parameter.POSITIONAL_OR_KEYWORD:
            raise TypeError(f"parameter {name!r} of {function!r} has to have a name and a place")
    if len(bodies) > 1:
        raise TypeError(f"{function!r} has one parameter for the body, not {', '.join(bodies)}")

    def call(message: Delivery) -> Any:
        return function(**{name: read(message) for name, read in readers.items()})

    return call


def _itself(message: Delivery) -> Delivery:
    return message


def _reader(kind: Any, codec: Callable[[Any], Codec[Any]]) -> Callable[[Delivery], Any]:
    """Return what reads the body as a type."""
    if kind is bytes:
        return lambda message: message.body
    used = TEXT if kind is str else codec(kind)
    return lambda message: message.decode(used)
