"""The synchronous methods of a channel: a method is sent, a reply is received.

`shared_channel` makes methods of both APIs of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from harebell.base.body_frames import BodyFrames
from harebell.base.limits import FRAME_OVERHEAD_BYTES
from harebell.client.bulk import BulkVerbs
from harebell.client.protocol.call import Call
from harebell.client.protocol.channel_parts import Host
from harebell.kernels.rows import Rows
from harebell.wire.v09 import methods as m
from harebell.wire.v09.frames import HEADER

T = TypeVar("T")


@dataclass
class QueueInfo:
    """The reply of queue.declare.

    Args:
        name: its name. When a connection recovers, a queue that the broker had named gets a new
            name, and the object that `declare_queue` returned shows it.
        message_count: number of ready messages.
        consumer_count: number of consumers.
    """

    name: str
    message_count: int
    consumer_count: int


class Verbs(BulkVerbs):
    """Declare, bind, unbind, purge, delete, qos, tx: every verb returns a `Call`."""

    _host: Host
    number: int

    def call(
        self, method: m.Method, reply: tuple[type[m.Method], ...], convert: Callable[[Any], T]
    ) -> Call[T]:
        """Send a method and expect one of these replies; see `Channel.call`."""
        raise NotImplementedError

    def need(self, extension: str) -> None:
        """Check that the broker supports a protocol extension.

        Raises:
            ExtensionMissing: it does not.
            UnsupportedByVersion: the version of AMQP has none of them.
        """
        self._host.check_extension(extension)

    def publish_rows(self, rows: Rows, flags: int, first: int, end: int) -> int:
        """Append publishes of some rows of a batch; the caller counts their confirms.

        Raises:
            BatchError: a row cannot become a message; then nothing is appended.
        """
        host = self._host
        return rows.publish(host.out, self.number, flags, host.frame_max, first, end)

    def content(self, class_id: int, data: bytes | memoryview) -> None:
        """Send the content of the previous method: no properties, and these bytes."""
        host = self._host
        head = class_id.to_bytes(2) + b"\0\0" + len(data).to_bytes(8) + b"\0\0"
        host.out.frame(HEADER, self.number, head)
        if data:
            # Large bytes are copied once, when the socket takes them.
            frames = BodyFrames(self.number, data, host.frame_max - FRAME_OVERHEAD_BYTES)
            host.out.postpone(frames)

    def on_command(self, method: m.Method) -> bool:
        """Handle a method that only some versions have; False for others."""
        return False

    def declare_exchange(
        self,
        name: str,
        type: str = "direct",  # noqa: A002 - the specification's word
        *,
        durable: bool = False,
        auto_delete: bool = False,
        internal: bool = False,
        passive: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> Call[None]:
        """Declare an exchange.

        Args:
            name: the exchange.
            type: direct, fanout, topic, headers or another type that the broker knows.
            durable: whether it survives a restart of the broker.
            auto_delete: whether it is deleted with its last binding.
            internal: whether only other exchanges may publish to it.
            passive: only check that it exists.
            arguments: for example {"alternate-exchange": "unrouted"}.
        """
        method = m.ExchangeDeclare(
            exchange=name,
            type=type,
            passive=passive,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=dict(arguments or {}),
        )
        return self.call(method, (m.ExchangeDeclareOk,), _nothing)

    def delete_exchange(self, name: str, *, if_unused: bool = False) -> Call[None]:
        """Delete an exchange; with `if_unused` fail if it has bindings."""
        method = m.ExchangeDelete(exchange=name, if_unused=if_unused)
        return self.call(method, (m.ExchangeDeleteOk,), _nothing)

    def bind_exchange(
        self,
        destination: str,
        source: str,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> Call[None]:
        """Bind the exchange `destination` to the exchange `source`."""
        method = m.ExchangeBind(destination=destination, source=source)
        return self._route(method, m.ExchangeBindOk, routing_key, arguments)

    def unbind_exchange(
        self,
        destination: str,
        source: str,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> Call[None]:
        """Remove a binding of `bind_exchange` with the same arguments."""
        method = m.ExchangeUnbind(destination=destination, source=source)
        return self._route(method, m.ExchangeUnbindOk, routing_key, arguments)

    def declare_queue(
        self,
        name: str = "",
        *,
        durable: bool = False,
        exclusive: bool = False,
        auto_delete: bool = False,
        passive: bool = False,
        arguments: Mapping[str, Any] | None = None,
    ) -> Call[QueueInfo]:
        """Declare a queue.

        Args:
            name: the queue; "" lets the broker generate a name, see the result.
            durable: whether it survives a restart of the broker.
            exclusive: whether only this connection may use it; deleted with it.
            auto_delete: whether it is deleted with its last consumer.
            passive: only check that it exists.
            arguments: for example {"x-message-ttl": 60000}.
        """
        method = m.QueueDeclare(
            queue=name,
            passive=passive,
            durable=durable,
            exclusive=exclusive,
            auto_delete=auto_delete,
            arguments=dict(arguments or {}),
        )
        return self.call(method, (m.QueueDeclareOk,), _queue_info)

    def bind_queue(
        self,
        queue: str,
        exchange: str,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> Call[None]:
        """Bind a queue to `exchange` with `routing_key`."""
        method = m.QueueBind(queue=queue, exchange=exchange)
        return self._route(method, m.QueueBindOk, routing_key, arguments)

    def unbind_queue(
        self,
        queue: str,
        exchange: str,
        routing_key: str = "",
        arguments: Mapping[str, Any] | None = None,
    ) -> Call[None]:
        """Remove a binding of `bind_queue` with the same arguments."""
        method = m.QueueUnbind(queue=queue, exchange=exchange)
        return self._route(method, m.QueueUnbindOk, routing_key, arguments)

    def _route(
        self, ends: m.Method, reply: type[m.Method], key: str, arguments: Mapping[str, Any] | None
    ) -> Call[None]:
        method = msgspec.structs.replace(ends, routing_key=key, arguments=dict(arguments or {}))
        return self.call(method, (reply,), _nothing)

    def purge_queue(self, name: str) -> Call[int]:
        """Remove all ready messages of a queue; return their number."""
        return self.call(m.QueuePurge(queue=name), (m.QueuePurgeOk,), _message_count)

    def delete_queue(
        self, name: str, *, if_unused: bool = False, if_empty: bool = False
    ) -> Call[int]:
        """Delete a queue; return the number of deleted messages.

        Args:
            name: the queue.
            if_unused: fail if it has consumers.
            if_empty: fail if it has messages.
        """
        method = m.QueueDelete(queue=name, if_unused=if_unused, if_empty=if_empty)
        return self.call(method, (m.QueueDeleteOk,), _message_count)

    def qos(self, prefetch: int, *, shared: bool = False) -> Call[None]:
        """Limit the unacknowledged messages (prefetch).

        Args:
            prefetch: maximum number of messages, 0 for no limit.
            shared: one limit for the channel (AMQP's `global`); without it, one for each consumer
                that is started afterwards.
        """
        method = m.BasicQos(prefetch_size=0, prefetch_count=prefetch, global_=shared)
        return self.call(method, (m.BasicQosOk,), _nothing)

    def recover(self) -> Call[None]:
        """Requeue and redeliver every unacknowledged message of the channel."""
        return self.call(m.BasicRecover(requeue=True), (m.BasicRecoverOk,), _nothing)

    def commit(self) -> Call[None]:
        """Commit the publishes and acknowledgements of the transaction."""
        return self.call(m.TxCommit(), (m.TxCommitOk,), _nothing)

    def rollback(self) -> Call[None]:
        """Discard the publishes and acknowledgements of the transaction."""
        return self.call(m.TxRollback(), (m.TxRollbackOk,), _nothing)


def _nothing(reply: Any) -> None:
    return None


def _queue_info(reply: m.QueueDeclareOk) -> QueueInfo:
    return QueueInfo(reply.queue, reply.message_count, reply.consumer_count)


def _message_count(reply: m.QueuePurgeOk | m.QueueDeleteOk) -> int:
    return reply.message_count
