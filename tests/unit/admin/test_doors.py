"""The doors side by side: what declares and deletes does the same over AMQP and over HTTP.

Each operation is done with each combination of rights and each kind of argument, in two brokers
that have the same: once by a method, and once by the command that HTTP and the command line run.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from copy import deepcopy
from itertools import product
from typing import Any, NamedTuple

import pytest

from harebell.admin.catalog import commands, find
from harebell.admin.definitions.entries import ImportTarget
from harebell.admin.definitions.exporter import document
from harebell.auth.permissions import Permissions
from harebell.auth.topics import TopicPermission
from harebell.base.errors import HarebellError
from harebell.base.slices import at_once
from harebell.management.http.errors import of_refusal
from harebell.wire.v09 import methods as m
from harebell.wire.v09.amqp_0_9_1 import AMQP_0_9_1
from tests.unit.admin.commands.site import Site
from tests.unit.front.amqp_0_9_1.world import EVERY_CAPABILITY, publish

USER = "ann"
RIGHTS = {
    **{
        f"configure={c!r} write={w!r} read={r!r}": (c, w, r, False)
        for c, w, r in product(("", ".*"), repeat=3)
    },
    "own": ("^mine", "^mine", "^mine", False),
    "topics": (".*", ".*", ".*", True),
}
"""Patterns for configure, write and read, and whether only keys that begin with "a" are allowed."""
STATUS = {403: 401, 404: 404}
"""The status of a reply code; 400 for every other."""


class Case(NamedTuple):
    """The same operation at two doors.

    Args:
        method: how it is asked for over AMQP.
        command: the command of HTTP and the command line.
        fields: its arguments.
    """

    method: m.Method
    command: str
    fields: dict[str, Any]


TABLES: dict[str, dict[str, Any]] = {
    "none": {},
    "unknown": {"unknown": [1, {"a": True}]},
    "dead letters to others": {"x-dead-letter-exchange": "other-x"},
    "dead letters to own": {"x-dead-letter-exchange": "mine-x"},
    "dead letters to none": {"x-dead-letter-exchange": "nothing"},
    "dead letters with a key": {
        "x-dead-letter-exchange": "mine-t",
        "x-dead-letter-routing-key": "b",
    },
    "dead letters of a number": {"x-dead-letter-exchange": 5},
    "alternate of others": {"alternate-exchange": "other-x"},
    "alternate of own": {"alternate-exchange": "mine-x"},
    "alternate of a number": {"alternate-exchange": 5},
    "quorum": {"x-queue-type": "quorum"},
    "stream": {"x-queue-type": "stream"},
    "no type": {"x-queue-type": "nothing"},
    "wrong length": {"x-max-length": -1},
    "wrong priority": {"x-max-priority": 256},
    "wrong expiry": {"x-expires": 0},
    "wrong type of a value": {"x-message-ttl": "5"},
}
QUEUES = ("mine-q", "other-q", "mine-new", "amq.new", "alone", "mine-" + "n" * 120)
EXCHANGES = ("mine-x", "other-x", "mine-new", "amq.new", "amq.direct", "")


def _queue_cases() -> Iterator[Case]:
    for name, table in product(("mine-new", "other-new", "mine-q"), TABLES.values()):
        for durable in (True, False):
            yield Case(
                m.QueueDeclare(name, durable=durable, arguments=table),
                "queues.declare",
                {"name": name, "durable": durable, "arguments": table},
            )
    for name in (*QUEUES, "mine-\r\nnew", "mine-\nq"):
        yield Case(m.QueueDeclare(name, durable=True), "queues.declare", {"name": name})
    for name in QUEUES:
        yield Case(m.QueuePurge(name), "queues.purge", {"name": name})
        for unused, empty in product((True, False), repeat=2):
            yield Case(
                m.QueueDelete(name, if_unused=unused, if_empty=empty),
                "queues.delete",
                {"name": name, "if_unused": unused, "if_empty": empty},
            )


def _exchange_cases() -> Iterator[Case]:
    kinds = ("direct", "topic", "x-delayed-message", "x-recent-history", "nothing")
    for name, kind, table in product(("mine-new", "mine-x"), kinds, TABLES.values()):
        yield Case(
            m.ExchangeDeclare(name, kind, durable=True, arguments=table),
            "exchanges.declare",
            {"name": name, "type": kind, "arguments": table},
        )
    for name in (*EXCHANGES, "mine-\r\nnew"):
        if name:
            yield Case(
                m.ExchangeDeclare(name, "direct", durable=True, auto_delete=True, internal=True),
                "exchanges.declare",
                {"name": name, "auto_delete": True, "internal": True},
            )
    for name in EXCHANGES:
        for unused in (True, False):
            yield Case(
                m.ExchangeDelete(name, if_unused=unused),
                "exchanges.delete",
                {"name": name, "if_unused": unused},
            )


def _binding_cases() -> Iterator[Case]:
    headers = ({}, {"x-match": "nothing"}, {"x-match": "all", "a": 1})
    sources = ("mine-x", "other-x", "mine-t", "mine-h", "mine-c", "nothing", "")
    for source, name in product(sources, ("mine-q", "other-q", "alone", "nothing")):
        for key, table in product(("a", "b", "1"), headers):
            between = {"vhost": "/", "source": source, "kind": "q", "destination": name}
            yield Case(
                m.QueueBind(name, source, key, arguments=table),
                "bindings.bind",
                {**between, "routing_key": key, "arguments": table},
            )
        for key in ("a", "b"):
            yield Case(
                m.QueueUnbind(name, source, key), "bindings.unbind", {**between, "props": key}
            )
    for source, selector in product(("mine-x", "mine-h", "mine-c"), ("n =", 5, "n = 5")):
        table = {"x-filter-jms-selector": selector}
        between = {"vhost": "/", "source": source, "kind": "q", "destination": "mine-q"}
        yield Case(
            m.QueueBind("mine-q", source, "1", arguments=table),
            "bindings.bind",
            {**between, "routing_key": "1", "arguments": table},
        )
    for source, name in product(sources, ("mine-x", "other-x", "nothing", "")):
        between = {"vhost": "/", "source": source, "kind": "e", "destination": name}
        yield Case(
            m.ExchangeBind(name, source, "a"), "bindings.bind", {**between, "routing_key": "a"}
        )
        yield Case(
            m.ExchangeUnbind(name, source, "a"), "bindings.unbind", {**between, "props": "a"}
        )


CASES = [*_queue_cases(), *_exchange_cases(), *_binding_cases()]
ABSENT = ("queues.delete", "exchanges.delete", "bindings.unbind")
"""Where RabbitMQ's methods succeed for what does not exist, and its HTTP API answers 404."""

SHARED = {
    "queue.declare": "queues.declare",
    "queue.purge": "queues.purge",
    "queue.delete": "queues.delete",
    "queue.bind": "bindings.bind",
    "queue.unbind": "bindings.unbind",
    "exchange.declare": "exchanges.declare",
    "exchange.delete": "exchanges.delete",
    "exchange.bind": "bindings.bind",
    "exchange.unbind": "bindings.unbind",
}
BY_OTHERS = {
    "bindings.add": "`bindings.bind` by names: the same operation",
    "bindings.delete": "`bindings.unbind` by names: the same operation",
    "streams.add-super": "several declarations and bindings: the same operations",
    "streams.delete-super": "several deletions: the same operations",
    "queues.retry-now": "AMQP has none",
    "queues.release-waiting": "AMQP has none",
    "queues.cancel-waiting": "AMQP has none",
    "exchanges.release-delayed": "AMQP has none",
    "exchanges.cancel-delayed": "AMQP has none",
    "queues.queue-action": "does nothing",
}
MESSAGES = (
    *("queues.get", "queues.move", "queues.copy", "queues.remove", "queues.retry"),
    "queues.discard",
    *("exchanges.publish", "exchanges.explain"),
)
"""Commands about messages, which their own tests compare."""


def test_every_method_and_every_command_that_declares_has_a_row() -> None:
    named = {
        method.name
        for method in AMQP_0_9_1.methods
        if method.from_client and method.name.partition(".")[0] in ("queue", "exchange")
    }
    assert {name for name in named if not name.endswith("-ok")} == set(SHARED)
    nouns = ("queues", "exchanges", "bindings", "streams")
    changing = {
        each.name
        for each in commands()
        if each.noun.name in nouns
        and not each.reads
        and each.verb not in ("list", "counters", "list-super")
    }
    assert changing == {*SHARED.values(), *BY_OTHERS, *MESSAGES}
    used = {(each.method.NAME, each.command) for each in CASES}
    assert used == set(SHARED.items())


class Side(NamedTuple):
    """One of the two brokers.

    Args:
        site: the broker, and its commands.
        peers: its connections.
    """

    site: Site
    peers: list[Any]

    def state(self) -> Any:
        """What is declared, and how many messages there are."""
        context = self.site.context
        vhost = context.broker.vhosts["/"]
        found = document(ImportTarget(context.broker, context.users, context.definitions))
        return (
            {section: found[section] for section in ("queues", "exchanges", "bindings")},
            {name: queue.ready_count() for name, queue in vhost.queues.items()},
            context.definitions.load("queue") and len(context.definitions.load("queue")),
        )


def _side(rights: tuple[str, str, str, bool]) -> Side:
    site = Site()
    owner = site.world.peer()
    for name in ("mine-q", "other-q"):
        owner.ask(m.QueueDeclare(name, durable=True))
        owner.give(publish(b"kept", name))
    owner.ask(m.QueueDeclare("alone", exclusive=True))
    kinds = {"x": "direct", "t": "topic", "h": "headers", "c": "x-consistent-hash"}
    for letter, kind in kinds.items():
        owner.ask(m.ExchangeDeclare(f"mine-{letter}", kind, durable=True))
    owner.ask(m.ExchangeDeclare("other-x", "fanout", durable=True))
    for source, key in (("mine-x", "a"), ("other-x", "a"), ("mine-t", "a"), ("mine-t", "b")):
        owner.ask(m.QueueBind("mine-q", source, key))
    owner.ask(m.QueueBind("alone", "mine-x", "a"))
    owner.ask(m.ExchangeBind("other-x", "mine-x", "a"))
    *patterns, topics = rights
    user = site.world.users.add(USER, USER, vhosts=("/",))
    user.permissions["/"] = Permissions(*patterns)
    if topics:
        user.topic_permissions["/"] = {"mine-t": TopicPermission("^a", "^a", USER, "/")}
    return Side(site, [owner])


def _over_amqp(side: Side, case: Case) -> tuple[int, str]:
    """Do it by a method; the reply code, 0 for none, and the text without the name of the code."""
    peer = side.site.world.connect()
    side.peers.append(peer)
    peer.log_in(EVERY_CAPABILITY, user=USER.encode())
    peer.ask(m.ChannelOpen())
    reply = peer.ask(case.method)
    if isinstance(reply, m.ChannelClose | m.ConnectionClose):
        return STATUS.get(reply.reply_code, 400), reply.reply_text.partition(" - ")[2]
    return 0, ""


def _over_http(side: Side, case: Case) -> tuple[int, str]:
    """Do it by a command on behalf of the user; the status, 0 for success, and the reason."""
    command, context = find(case.command), side.site.context
    user = context.users.get(USER)
    assert command is not None
    assert user is not None
    try:
        answer = command.run(
            context.on_behalf_of(user), **command.arguments_of(deepcopy(case.fields))
        )
        if isinstance(answer, Generator):
            at_once(answer)
    except HarebellError as error:
        refused = of_refusal(error)
        return refused.status, refused.reason.partition(": `harebell")[0]
    return 0, ""


@pytest.mark.parametrize("rights", RIGHTS.values(), ids=RIGHTS)
@pytest.mark.parametrize("command", sorted(set(SHARED.values())))
def test_the_doors_agree(command: str, rights: tuple[str, str, str, bool]) -> None:
    # What is refused changes nothing, so the next case may use the same brokers.
    amqp, http = _side(rights), _side(rights)
    before = amqp.state()
    assert http.state() == before
    for case in CASES:
        if case.command != command:
            continue
        by_method, by_command = _over_amqp(amqp, case), _over_http(http, case)
        after = amqp.state()
        # HTTP has no key of a binding that does not exist, so it asks for no topic permission.
        done = by_method[0] == 0 or "access to topic" in by_method[1]
        absent = done and after == before and command in ABSENT
        if not (absent and by_command[0] == 404):
            assert by_command == by_method, case
        assert http.state() == after, case
        if after != before:
            amqp, http = _side(rights), _side(rights)
        elif by_method[0]:
            assert after == before, case
