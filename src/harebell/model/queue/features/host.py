"""The interface of a queue that its parts use.

`MessageQueue` implements it. The parts import this module instead of the one that imports them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from harebell.base.message import Message
    from harebell.model.consumer import Consumer
    from harebell.model.dead_letter import DeadLetters
    from harebell.model.queue.features.consumers import Consumers
    from harebell.model.queue.order.contract import MessageOrder
    from harebell.model.queue.order.keyed import KeyedOrder
    from harebell.model.queue_context import QueueContext


class Host(Protocol):
    """A queue as its parts see it; `MessageQueue` documents the members."""

    name: str
    vhost: str
    owner: object
    arguments: Mapping[str, Any]
    consumers: Consumers
    unacked: int
    leased: int
    deleted: bool
    single: bool
    order: MessageOrder
    keyed: KeyedOrder | None
    context: QueueContext | None
    dead_letters: DeadLetters | None
    # Parts that other parts use.
    quorum: Any
    retry: Any
    no_local: Any

    @property
    def may_expire(self) -> bool: ...

    @property
    def counts_bytes(self) -> bool: ...

    def ready_count(self) -> int: ...

    def count_delivery(self, consumer: Consumer, redelivered: bool) -> int: ...

    def left(self, message: Message) -> int: ...

    def with_count(self, message: Message) -> Message: ...

    def prepare_take(self) -> int: ...

    def put_back(self, position: int) -> int: ...

    def come_back(self, position: int) -> int: ...

    def pause(self, position: int) -> int: ...

    def drain(self) -> int: ...

    def expire(self) -> None: ...

    def expired(self, message: Message) -> bool: ...

    def dead_letter(self, position: int, reason: str) -> int: ...

    def sync_soon(self) -> int: ...

    def begin_count(self) -> int: ...

    def count_end(self, position: int) -> int: ...

    def count_at(self, position: int) -> int: ...

    def counts_again(self, position: int, message: Message) -> int: ...

    def claimed(self) -> int: ...

    def released(self) -> int: ...
