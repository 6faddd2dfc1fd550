"""Record the declarations of a connection, to repeat them on a recovered connection.

Exchanges, queues and bindings belong to the connection; qos, mode and consumers to a channel.
Passive declarations are not recorded. A queue that the broker named gets another name the second
time; its bindings and consumers follow, and its old name is translated from then on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from harebell.client.protocol.channel_parts import CoreConsumer, M, Mode
from harebell.client.protocol.verbs import QueueInfo
from harebell.wire.v09 import methods as m

Binding = m.QueueBind | m.ExchangeBind


class QueueRecord:
    """A declared queue, and the object that the application has for it."""

    def __init__(self, method: m.QueueDeclare, info: QueueInfo, server_named: bool) -> None:
        self.method = method
        self.infos = [info]
        self.server_named = server_named


class ConsumerRecord:
    """A consumer, and the prefetch at the time of its subscription."""

    def __init__(
        self, method: m.BasicConsume, consumer: CoreConsumer, prefetch: m.BasicQos | None
    ) -> None:
        self.method = method
        self.consumer = consumer
        self.prefetch = prefetch


class ChannelRecord:
    """What was set up on one channel."""

    def __init__(self) -> None:
        self.mode = Mode.PLAIN
        self.prefetch: m.BasicQos | None = None
        self.shared_prefetch: m.BasicQos | None = None
        self.consumers: dict[str, ConsumerRecord] = {}
        self.last_queue = ""


class Topology:
    """The recorder of one connection (`channel_parts.Recorder`)."""

    def __init__(self) -> None:
        self.exchanges: dict[str, m.ExchangeDeclare] = {}
        self.queues: dict[str, QueueRecord] = {}
        self.bindings: list[Binding] = []
        self.channels: dict[int, ChannelRecord] = {}
        self._names: dict[str, str] = {}

    def channel(self, number: int) -> ChannelRecord:
        """Return the record of a channel."""
        return self.channels.setdefault(number, ChannelRecord())

    def name_now(self, queue: str) -> str:
        """Return the present name of a queue, for any name that it had."""
        return self._names.get(queue, queue)

    # --- channel_parts.Recorder -----------------------------------------------------------------

    def rewrite(self, channel: int, method: M) -> M:
        """Replace old names of queues by the present ones, and "" by the last declared queue."""
        queue: str | None = getattr(method, "queue", None)
        if queue is None:
            return method
        if queue == "" and not isinstance(method, m.QueueDeclare):
            queue = self.channel(channel).last_queue
        now = self.name_now(queue)
        if now == method.queue:  # type: ignore[attr-defined]
            return method
        return msgspec.structs.replace(method, queue=now)

    def observe(self, channel: int, method: m.Method, result: Any) -> None:
        """Record a completed method."""
        handler = _HANDLERS.get(type(method))
        if handler is not None:
            handler(self, channel, method, result)

    def forget_consumer(self, channel: int, tag: str) -> None:
        """Forget a consumer, and an auto-delete queue with its last consumer."""
        record = self.channel(channel).consumers.pop(tag, None)
        if record is None:
            return
        queue = record.method.queue
        queue_record = self.queues.get(queue)
        if queue_record is None or not queue_record.method.auto_delete:
            return
        for other in self.channels.values():
            if any(consumer.method.queue == queue for consumer in other.consumers.values()):
                return
        self._drop_queue(queue)

    def forget_channel(self, channel: int) -> None:
        """Forget a channel and its consumers."""
        for tag in list(self.channel(channel).consumers):
            self.forget_consumer(channel, tag)
        self.channels.pop(channel, None)

    # --- recovery -------------------------------------------------------------------------------

    def rename(self, old: str, new: str) -> None:
        """Record a new name of a queue."""
        record = self.queues.pop(old)
        self.queues[new] = record
        for info in record.infos:
            info.name = new
        for older, now in list(self._names.items()):
            if now == old:
                self._names[older] = new
        self._names[old] = new
        self.bindings = [
            msgspec.structs.replace(binding, queue=new)
            if isinstance(binding, m.QueueBind) and binding.queue == old
            else binding
            for binding in self.bindings
        ]
        for channel in self.channels.values():
            if channel.last_queue == old:
                channel.last_queue = new
            for consumer in channel.consumers.values():
                if consumer.method.queue == old:
                    consumer.method = msgspec.structs.replace(consumer.method, queue=new)

    # --- recording ------------------------------------------------------------------------------

    def record_exchange_declared(
        self, channel: int, method: m.ExchangeDeclare, result: None
    ) -> None:
        if not method.passive:
            self.exchanges[method.exchange] = method

    def record_exchange_deleted(self, channel: int, method: m.ExchangeDelete, result: int) -> None:
        self._drop_exchange(method.exchange)

    def record_queue_declared(
        self, channel: int, method: m.QueueDeclare, result: QueueInfo
    ) -> None:
        self.channel(channel).last_queue = result.name
        if method.passive:
            return
        record = self.queues.get(result.name)
        if record is None:
            self.queues[result.name] = QueueRecord(method, result, method.queue == "")
        else:
            record.infos.append(result)

    def record_queue_deleted(self, channel: int, method: m.QueueDelete, result: int) -> None:
        self._drop_queue(method.queue)

    def record_bound(self, channel: int, method: Binding, result: None) -> None:
        if method not in self.bindings:
            self.bindings.append(method)

    def record_unbound(
        self, channel: int, method: m.QueueUnbind | m.ExchangeUnbind, result: None
    ) -> None:
        self._drop_bindings(lambda binding: _route(binding) == _route(method))

    def record_qos(self, channel: int, method: m.BasicQos, result: None) -> None:
        record = self.channel(channel)
        if method.global_:
            record.shared_prefetch = method
        else:
            record.prefetch = method

    def record_confirms(self, channel: int, method: m.ConfirmSelect, result: None) -> None:
        self.channel(channel).mode = Mode.CONFIRM

    def record_transactions(self, channel: int, method: m.TxSelect, result: None) -> None:
        self.channel(channel).mode = Mode.TRANSACTION

    def record_consumed(self, channel: int, method: m.BasicConsume, result: CoreConsumer) -> None:
        record = self.channel(channel)
        record.consumers[result.tag] = ConsumerRecord(method, result, record.prefetch)

    def record_cancelled(self, channel: int, method: m.BasicCancel, result: None) -> None:
        self.forget_consumer(channel, method.consumer_tag)

    def _drop_queue(self, queue: str) -> None:
        self.queues.pop(queue, None)
        self._drop_bindings(
            lambda binding: isinstance(binding, m.QueueBind) and binding.queue == queue
        )

    def _drop_exchange(self, exchange: str) -> None:
        self.exchanges.pop(exchange, None)
        self._drop_bindings(
            lambda binding: (
                exchange == _source(binding)
                or (isinstance(binding, m.ExchangeBind) and exchange == binding.destination)
            )
        )

    def _drop_bindings(self, gone: Callable[[Binding], bool]) -> None:
        """Forget bindings, and auto-delete exchanges with their last binding."""
        dropped = [binding for binding in self.bindings if gone(binding)]
        self.bindings = [binding for binding in self.bindings if not gone(binding)]
        for source in {_source(binding) for binding in dropped}:
            exchange = self.exchanges.get(source)
            still_bound = any(_source(binding) == source for binding in self.bindings)
            if exchange is not None and exchange.auto_delete and not still_bound:
                self._drop_exchange(source)


def _source(binding: Binding) -> str:
    return binding.exchange if isinstance(binding, m.QueueBind) else binding.source


def _route(method: Binding | m.QueueUnbind | m.ExchangeUnbind) -> tuple[Any, ...]:
    """Return what a binding has in common with the method that removes it."""
    if isinstance(method, m.QueueBind | m.QueueUnbind):
        return True, method.queue, method.exchange, method.routing_key, method.arguments
    return False, method.destination, method.source, method.routing_key, method.arguments


_HANDLERS: dict[type[m.Method], Callable[[Topology, int, Any, Any], None]] = {
    m.ExchangeDeclare: Topology.record_exchange_declared,
    m.ExchangeDelete: Topology.record_exchange_deleted,
    m.ExchangeBind: Topology.record_bound,
    m.ExchangeUnbind: Topology.record_unbound,
    m.QueueDeclare: Topology.record_queue_declared,
    m.QueueDelete: Topology.record_queue_deleted,
    m.QueueBind: Topology.record_bound,
    m.QueueUnbind: Topology.record_unbound,
    m.BasicQos: Topology.record_qos,
    m.BasicConsume: Topology.record_consumed,
    m.BasicCancel: Topology.record_cancelled,
    m.ConfirmSelect: Topology.record_confirms,
    m.TxSelect: Topology.record_transactions,
}
