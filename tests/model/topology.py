"""Exchanges, queues and bindings of the reference broker, and where a message goes."""

from __future__ import annotations

from typing import Any

from tests.model.things import Channel, Exchange, Message, Queue, Refused

PREDECLARED = {
    "": "direct",
    "amq.direct": "direct",
    "amq.fanout": "fanout",
    "amq.topic": "topic",
    "amq.headers": "headers",
    "amq.match": "headers",
}

SELECTOR = {"x-filter-jms-selector": "h = 1"}
"""The arguments of a binding with the one selector that there is."""


def topic_words(key: str) -> list[str]:
    """Zero or more words delimited by dots (AMQP 0-9-1 3.1.3.3)."""
    return key.split(".") if key else []


def topic_fits(pattern: list[str], words: list[str]) -> bool:
    """`*` is one word, `#` is none or more (AMQP 0-9-1 3.1.3.3)."""
    if not pattern:
        return not words
    if pattern[0] == "#":
        return topic_fits(pattern[1:], words) or bool(words and topic_fits(pattern, words[1:]))
    return bool(words) and pattern[0] in ("*", words[0]) and topic_fits(pattern[1:], words[1:])


def same(one: Any, other: Any) -> bool:
    """Equal as field table values: 1 is not true."""
    return type(one) is type(other) and bool(one == other)


def headers_fit(arguments: dict[str, Any], headers: dict[str, Any]) -> bool:
    """x-match all or any, of values or, where there is none, of presence."""
    wanted = {k: v for k, v in arguments.items() if not k.startswith("x-")}
    fits = [k in headers and (v is None or same(v, headers[k])) for k, v in wanted.items()]
    return any(fits) if arguments.get("x-match") == "any" else all(fits)


class Topology:
    """Exchanges, queues and bindings by name; the rest of the broker derives from it."""

    def __init__(self) -> None:
        self.exchanges = {name: Exchange(kind, durable=True) for name, kind in PREDECLARED.items()}
        self.bindings: list[tuple[str, str, str, str, dict[str, Any]]] = []
        self.queues: dict[str, Queue] = {}
        self.connections: dict[int, bool] = {}
        self.said: list[tuple[int, tuple[Any, ...]]] = []

    def say(self, channel: Channel, *event: Any) -> None:
        """The broker says something on a channel."""
        self.said.append((channel.connection, (channel.number, *event)))

    # --- exchanges ------------------------------------------------------------------------------

    def exchange(self, name: str) -> Exchange:
        if name not in self.exchanges:
            raise Refused(404)
        return self.exchanges[name]

    def declare_exchange(self, channel: Channel, name: str, wanted: Exchange) -> None:
        if name == "":
            raise Refused(403)
        if name in self.exchanges:
            if vars(self.exchanges[name]) != vars(wanted):
                raise Refused(406)
        elif name.startswith("amq."):
            raise Refused(403)
        else:
            self.exchanges[name] = wanted
        self.say(channel, "exchange.declare-ok")

    def check_exchange(self, channel: Channel, name: str) -> None:
        if name == "":
            raise Refused(403)
        self.exchange(name)
        self.say(channel, "exchange.declare-ok")

    def delete_exchange(self, channel: Channel, name: str, if_unused: bool) -> None:
        if name == "" or name.startswith("amq."):
            raise Refused(403)
        if name in self.exchanges:
            if if_unused and any(source == name for source, *_ in self.bindings):
                raise Refused(406)
            self.drop_exchange(name)
        self.say(channel, "exchange.delete-ok")

    def drop_exchange(self, name: str) -> None:
        del self.exchanges[name]
        self.unbind_all(lambda b: b[0] == name or b[1:3] == ("exchange", name))

    def unbind_all(self, gone: Any) -> None:
        """Remove bindings; exchanges that lost their last one go when they are auto-delete."""
        lost = [b for b in self.bindings if gone(b)]
        self.bindings = [b for b in self.bindings if not gone(b)]
        for source in {b[0] for b in lost}:
            left = any(b[0] == source for b in self.bindings)
            if source in self.exchanges and self.exchanges[source].auto_delete and not left:
                self.drop_exchange(source)

    def bind_exchange(
        self, channel: Channel, destination: str, source: str, key: str, arguments: dict[str, Any]
    ) -> None:
        if "" in (destination, source):
            raise Refused(403)
        self.exchange(destination)
        self.add_binding((source, "exchange", destination, key, arguments))
        self.say(channel, "exchange.bind-ok")

    def unbind_exchange(
        self, channel: Channel, destination: str, source: str, key: str, arguments: dict[str, Any]
    ) -> None:
        if "" in (destination, source):
            raise Refused(403)
        wanted = (source, "exchange", destination, key, arguments)
        self.unbind_all(lambda b: b == wanted)
        self.say(channel, "exchange.unbind-ok")

    def add_binding(self, binding: tuple[str, str, str, str, dict[str, Any]]) -> None:
        self.exchange(binding[0])
        if binding not in self.bindings:
            self.bindings.append(binding)

    # --- queues ---------------------------------------------------------------------------------

    def queue(self, channel: Channel, name: str) -> Queue:
        if name not in self.queues:
            raise Refused(404)
        queue = self.queues[name]
        if queue.owner not in (None, channel.connection):
            raise Refused(405)
        return queue

    def declare_queue(
        self, channel: Channel, name: str, durable: bool, exclusive: bool, auto_delete: bool
    ) -> None:
        kept = durable and not exclusive
        if name in self.queues:
            queue = self.queue(channel, name)
            if exclusive != (queue.owner is not None):
                raise Refused(405)
            if (kept, auto_delete) != (queue.durable, queue.auto_delete):
                raise Refused(406)
        elif name.startswith("amq."):
            raise Refused(403)
        else:
            owner = channel.connection if exclusive else None
            self.queues[name] = Queue(name, kept, auto_delete, owner)
        self.check_queue(channel, name)

    def check_queue(self, channel: Channel, name: str) -> None:
        queue = self.queue(channel, name)
        counts = (len(queue.ready), len(queue.consumers))
        self.say(channel, "queue.declare-ok", name, *counts)

    def bind_queue(
        self, channel: Channel, name: str, source: str, key: str, arguments: dict[str, Any]
    ) -> None:
        if source == "":
            raise Refused(403)
        self.queue(channel, name)
        self.add_binding((source, "queue", name, key, arguments))
        self.say(channel, "queue.bind-ok")

    def unbind_queue(
        self, channel: Channel, name: str, source: str, key: str, arguments: dict[str, Any]
    ) -> None:
        if source == "":
            raise Refused(403)
        if name in self.queues:
            self.queue(channel, name)
        wanted = (source, "queue", name, key, arguments)
        self.unbind_all(lambda b: b == wanted)
        self.say(channel, "queue.unbind-ok")

    def purge(self, channel: Channel, name: str) -> None:
        queue = self.queue(channel, name)
        count = len(queue.ready)
        queue.ready.clear()
        self.say(channel, "queue.purge-ok", count)

    def delete_queue(self, channel: Channel, name: str, if_unused: bool, if_empty: bool) -> None:
        count = 0
        if name in self.queues:
            queue = self.queue(channel, name)
            if (if_unused and queue.consumers) or (if_empty and queue.ready):
                raise Refused(406)
            count = len(queue.ready)
            self.drop_queue(queue)
        self.say(channel, "queue.delete-ok", count)

    def drop_queue(self, queue: Queue) -> None:
        del self.queues[queue.name]
        self.unbind_all(lambda b: b[1:3] == ("queue", queue.name))
        for consumer in queue.consumers:
            del consumer.channel.consumers[consumer.tag]
            if self.connections[consumer.channel.connection]:
                self.say(consumer.channel, "basic.cancel", consumer.tag)
        queue.consumers = []
        queue.ready.clear()

    # --- routing ---------------------------------------------------------------------------------

    def destinations(self, name: str, message: Message, seen: set[str]) -> set[str]:
        """Names of the queues a message goes to from an exchange; cycles are cut by `seen`."""
        if name in seen or name not in self.exchanges:
            return set()
        seen.add(name)
        if name == "":
            return {message.key} & set(self.queues)
        exchange = self.exchanges[name]
        matched = [b for b in self.bindings if b[0] == name and self.matches(exchange, b, message)]
        found = {b[2] for b in matched if b[1] == "queue"}
        for binding in matched:
            if binding[1] == "exchange":
                found |= self.destinations(binding[2], message, seen)
        if not matched and exchange.alternate is not None:
            found |= self.destinations(exchange.alternate, message, seen)
        return found

    @staticmethod
    def matches(exchange: Exchange, binding: tuple[Any, ...], message: Message) -> bool:
        if SELECTOR.items() <= binding[4].items() and not same(message.headers.get("h"), 1):
            return False
        if exchange.kind == "direct":
            return bool(binding[3] == message.key)
        if exchange.kind == "topic":
            return topic_fits(topic_words(binding[3]), topic_words(message.key))
        return exchange.kind == "fanout" or headers_fit(binding[4], message.headers)
