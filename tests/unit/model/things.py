"""Parts of a broker for tests of the model: messages, vhosts, and consumers that write down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.model.consumer import Consumer
from harebell.model.editor import Editor
from harebell.model.queue.factory import classic_queue
from harebell.model.queue.factory import priority_queue as make_priority_queue
from harebell.model.queue.queue import MessageQueue
from harebell.model.vhost import VHost
from harebell.store.log.memory import MemoryLog, MemoryStore

NO_PROPERTIES = Properties(b"\0\0")
HEADERS: dict[bytes, dict[str, Any]] = {}
"""What `headers_of` finds: the model takes decoding from outside, so any encoding will do."""


def message(body: bytes = b"", key: str = "", exchange: str = "") -> Message:
    return Message(exchange, key, NO_PROPERTIES, body)


def with_headers(
    headers: dict[str, Any], key: str = "", exchange: str = "", body: bytes = b""
) -> Message:
    """A message whose encoded properties stand for these headers."""
    raw = repr(sorted(headers.items(), key=repr)).encode()
    HEADERS[raw] = headers
    return Message(exchange, key, Properties(raw, has_headers=True), body)


def headers_of(routed: Message) -> Mapping[str, Any]:
    return HEADERS[routed.raw]


def vhost(gauge: Gauge | None = None) -> VHost:
    return VHost("/", MemoryStore(gauge or Gauge()), Editor(headers_of))


def queue(name: str = "q", **options: Any) -> MessageQueue:
    return classic_queue(name, "/", MemoryLog(options.pop("gauge", None) or Gauge()), **options)


def priority_queue(name: str = "q", limit: int = 5, **options: Any) -> MessageQueue:
    gauge = options.pop("gauge", None) or Gauge()
    return make_priority_queue(name, "/", lambda level: MemoryLog(gauge), limit, **options)


def rest(queue: Any) -> list[bytes]:
    """Take and settle what is ready in a queue; the bodies, in order."""
    found = []
    while (one := queue.get()) is not None:
        found.append(one[0].body)
        queue.settle(one[1])
    return found


class Taker(Consumer):
    """Takes up to `credit` unacknowledged messages and remembers what it got."""

    def __init__(self, of: Any, tag: str = "c", credit: int = 10**9, **options: Any) -> None:
        super().__init__(of, tag, **options)
        self.credit = credit
        self.got: list[tuple[bytes, int, bool]] = []
        self.told_of_the_end = False

    def ready(self) -> bool:
        return self.credit > 0

    def deliver(self, message: Message, position: int, redelivered: bool) -> int:
        self.credit -= 1
        self.got.append((message.body, position, bool(redelivered)))
        return 0

    def queue_deleted(self) -> None:
        self.told_of_the_end = True

    @property
    def bodies(self) -> list[bytes]:
        return [body for body, _, _ in self.got]
