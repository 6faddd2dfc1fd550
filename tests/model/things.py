"""What the reference broker is made of: messages, queues, consumers, channels, as plain records."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


class Refused(Exception):
    """The operation fails: this reply code closes the channel or (hard) the connection."""

    def __init__(self, code: int, hard: bool = False) -> None:
        super().__init__(code)
        self.code = code
        self.hard = hard


@dataclass(order=True)
class Entry:
    """A message in a queue; `position` is its place, which it keeps when it comes back."""

    position: int
    message: Message = field(compare=False)
    redelivered: bool = field(default=False, compare=False)


@dataclass
class Message:
    exchange: str
    key: str
    body: bytes
    headers: dict[str, Any]
    persistent: bool = False


@dataclass(eq=False)
class Exchange:
    kind: str
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    alternate: str | None = None


@dataclass(eq=False)
class Queue:
    name: str
    durable: bool
    auto_delete: bool
    owner: int | None
    ready: list[Entry] = field(default_factory=list)
    consumers: list[Consumer] = field(default_factory=list)


@dataclass(eq=False)
class Consumer:
    channel: Channel
    tag: str
    queue: Queue
    no_ack: bool
    exclusive: bool
    priority: int
    prefetch: int
    served: int = 0
    outstanding: int = 0

    def credit(self) -> bool:
        if self.no_ack:
            return True
        channel = self.channel
        if channel.prefetch_global and len(channel.unacked) >= channel.prefetch_global:
            return False
        return not self.prefetch or self.outstanding < self.prefetch


@dataclass
class Unacked:
    tag: int
    entry: Entry
    queue: Queue
    consumer: Consumer | None


@dataclass(eq=False)
class Channel:
    connection: int
    number: int
    unacked: dict[int, Unacked] = field(default_factory=dict)
    next_tag: int = 1
    consumers: dict[str, Consumer] = field(default_factory=dict)
    prefetch: int = 0
    prefetch_global: int = 0
    confirmed: int | None = None
    transaction: list[tuple[Any, ...]] | None = None
