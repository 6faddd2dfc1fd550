"""Channels of the asyncio API."""

from __future__ import annotations

from collections.abc import AsyncIterable, Generator, Iterable
from typing import TYPE_CHECKING, Any

from harebell.client.aio.consumer import Consumer, Delivery
from harebell.client.aio.driver import AsyncClosing, AsyncShell
from harebell.client.aio.worker import Worker
from harebell.client.message import Item
from harebell.client.protocol.shared_channel import SharedChannel, SharedPendingConfirm

if TYPE_CHECKING:
    from harebell.client.aio.connection import Connection


class PendingConfirm(SharedPendingConfirm, AsyncShell):
    """An unconfirmed publish; awaiting it waits for the broker's confirm.

    Raises (when awaited):
        PublishNacked: the broker refused it.
        PublishReturned: it was mandatory and unroutable.
        ConnectionLost, ChannelClosed: the outcome is unknown.
    """

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        if self._confirm.done:
            return self._confirm.value()
        yield from self._connection.finish(self._confirm).__await__()


class Channel(
    SharedChannel[Delivery, PendingConfirm, Consumer, Worker, Iterable[Item] | AsyncIterable[Item]],
    AsyncClosing,
    AsyncShell,
):
    """A channel: the verbs of AMQP as coroutines. Get one from `Connection.channel()`.

    Args:
        connection: the open connection that it belongs to.
        core: its protocol state.
    """

    connection: Connection
    _delivery_type = Delivery
    _pending_confirm_type = PendingConfirm
    consumer_type = Consumer
    _worker_type = Worker
