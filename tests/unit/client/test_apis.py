"""The asyncio and the blocking API are the same API, but for how they wait."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from typing import Any

import pytest

from harebell.client import aio, blocking
from harebell.client.errors import PublishReturned
from tests.running import running_broker

ASYNCIO_ONLY = {
    # It waits for the socket separately, and belongs to an event loop.
    "Connection": {
        *("open", "wait_closed", "taken", "congested", "drain"),
    },
    # A subscription of the blocking API is made at once.
    "Consumer": {"start"},
    # A worker that runs beside a block.
    "Worker": {"on_end"},
}
BLOCKING_ONLY = {
    # It reads and writes inside calls, and hands deliveries to sinks.
    "Channel": {"arrow_batches", "consume_into", "drop_sink"},
    "Connection": {"abort", "listening", "pump"},
    # Under asyncio these objects and calls are awaited.
    "PendingConfirm": {"wait"},
    "Requester": {"send"},
}
CONNECT_BLOCKING_ONLY = {"call_timeout", "background_heartbeats"}
EVENTS = {"blocked"}
"""Attributes of instances under asyncio, where a program waits for them."""
OTHER_TYPES = {("Channel", "publish_many", "items")}
"""Under asyncio also an asynchronous iterable."""
OWN_WORDS = {
    *(("Channel", "consume"), ("Channel", "publish_nowait"), ("Connection", "check_thread")),
    *(("Connection", "finish"), ("Connection", "finish_end"), ("Connection", "flush")),
    *(("Connection", "later"), ("Connection", "requester"), ("Connection", "touch")),
    *(("Connection", "usable"), ("Connection", "written"), ("Worker", "run")),
}
"""Methods whose descriptions name the ways to wait."""

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DRIVERS = {
    # How a task or a call waits, and what a lost socket and a closed one mean to it.
    "Connection": {
        *("__init__", "_end", "_recover", "_until", "_use", "answer", "check_thread", "close"),
        *("finish", "finish_end", "flush", "is_open", "later", "touch", "usable", "written"),
    },
    # How handlers run, and how a worker is woken.
    "Worker": {"run", "_wake"},
    # The shared one knows no entropy.
    "Requester": {"__init__"},
}
"""Methods that are written in both."""

CLASSES = ("Channel", "Connection", "Consumer", "Delivery", "PendingConfirm", "Requester", "Worker")


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def methods(name: str) -> list[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """The methods that a class has in both APIs."""
    there, here = getattr(aio, name), getattr(blocking, name)
    both = sorted(public(there) & public(here))
    pairs = [(each, getattr(there, each), getattr(here, each)) for each in both]
    return [pair for pair in pairs if inspect.isfunction(pair[1])]


def parameters(function: Callable[..., Any], left_out: set[str]) -> list[tuple[str, object, Any]]:
    found = inspect.signature(function).parameters.values()
    return [(each.name, each.kind, each.default) for each in found if each.name not in left_out]


def types(function: Callable[..., Any]) -> dict[str, str]:
    found = inspect.signature(function).parameters.values()
    return {each.name: str(each.annotation) for each in found}


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_has_the_same_methods_in_both(name: str) -> None:
    there, here = public(getattr(aio, name)), public(getattr(blocking, name))
    assert there - here == ASYNCIO_ONLY.get(name, set())
    assert here - there - EVENTS == BLOCKING_ONLY.get(name, set())


@pytest.mark.parametrize("name", CLASSES)
def test_a_method_takes_the_same_arguments_in_both(name: str) -> None:
    for method, there, here in methods(name):
        assert parameters(there, set()) == parameters(here, set()), method
        other = {word for kind, verb, word in OTHER_TYPES if (kind, verb) == (name, method)}
        pairs = zip(types(there).items(), types(here).items(), strict=True)
        assert {word for (word, a), (_, b) in pairs if a != b} == other, method


@pytest.mark.parametrize("name", CLASSES)
def test_a_method_is_described_in_the_same_words_in_both(name: str) -> None:
    different = {
        (name, method)
        for method, there, here in methods(name)
        if inspect.getdoc(there) != inspect.getdoc(here)
    }
    assert different == {each for each in OWN_WORDS if each[0] == name}


@pytest.mark.parametrize("name", CLASSES)
def test_no_method_is_written_in_both_but_those_of_the_drivers(name: str) -> None:
    written = []
    for api in (aio, blocking):
        [tree] = ast.parse(inspect.getsource(getattr(api, name))).body
        functions = (each for each in ast.walk(tree) if isinstance(each, FUNCTIONS))
        written.append({each.name for each in functions})
    assert written[0] & written[1] == DRIVERS.get(name, set())


def test_connect_takes_the_same_arguments_in_both() -> None:
    assert parameters(aio.connect, set()) == parameters(blocking.connect, CONNECT_BLOCKING_ONLY)


@pytest.mark.parametrize("api", [aio, blocking])
def test_help_names_the_types_of_the_api(api: Any) -> None:
    assert str(inspect.signature(api.Channel.handle)).endswith("-> 'Worker'")
    handler = inspect.signature(api.Channel.handle).parameters["handler"]
    assert handler.annotation == "Callable[[Delivery], Any]"
    block = "AsyncIterator" if api is aio else "Iterator"
    assert inspect.signature(api.Delivery.process).return_annotation == f"{block}[Delivery]"
    assert list(inspect.signature(api.Delivery.process).parameters) == [
        *("self", "requeue", "reject_on_redelivered", "ignore_processed"),
    ]


@pytest.mark.parametrize("api", [aio, blocking])
def test_help_says_what_a_method_takes_and_returns(api: Any) -> None:
    found = inspect.signature(api.Channel.declare_queue)
    assert list(found.parameters)[:3] == ["self", "name", "durable"]
    assert str(found.return_annotation) == "QueueInfo"
    for name in public(api.Channel):
        method = getattr(api.Channel, name)
        if inspect.isfunction(method):
            assert "Call[" not in str(inspect.signature(method)), name


def test_completion_and_repr_show_what_programs_use() -> None:
    with running_broker() as broker:
        with blocking.connect(broker.address()) as connection:
            channel = connection.channel()
            shown = set(dir(channel))
            assert {"publish", "consume", "declare_queue", "lease_open", "transaction"} <= shown
            internal = {"adopt", "span", "core", "speaks_for", "inboxes", "ended"}
            assert not shown & internal
            assert not [name for name in shown if name.startswith("stage_")]
            assert {"channel", "close", "is_open", "heartbeat"} <= set(dir(connection))
            assert not {"finish", "usable", "forget_channel"} & set(dir(connection))
            where = f"127.0.0.1:{broker.port}"
            assert repr(connection) == f"<Connection guest@{where}, vhost '/', AMQP 0-9-1, open>"
            assert repr(channel) == f"<Channel 1 on {where}, open>"
            queue = channel.declare_queue("q", durable=True)
            assert repr(queue) == "QueueInfo(name='q', message_count=0, consumer_count=0)"
            channel.publish(b"one", routing_key="q", persistent=True)
            with connection.requester() as requester:
                assert repr(requester) == f"<Requester on {where}, 0 requests wait>"
                assert {"call", "send", "close"} <= set(dir(requester))
                assert "requests" not in dir(requester)
            confirm = channel.publish_nowait(b"x", routing_key="none", mandatory=True)
            assert repr(confirm) == "<PendingConfirm pending>"
            with pytest.raises(PublishReturned):
                confirm.wait()
            assert repr(confirm).startswith("<PendingConfirm failed: 312 NO_ROUTE")
            message = channel.get("q")
            assert message is not None
            assert (message.delivery_mode, message.persistent) == (2, True)
            assert repr(message) == (
                "<Delivery exchange='' routing_key='q' 3 bytes delivery_tag=1>"
            )
            assert {"ack", "process", "json", "headers"} <= set(dir(message))
            assert not {"encoded", "give_up"} & set(dir(message))
            message.ack()
            with channel.consume("q", tag="mine", timeout=0) as consumer:
                assert repr(consumer) == "<Consumer 'mine' of queue 'q', 0 messages wait>"
            assert repr(consumer) == "<Consumer 'mine' of queue 'q', ended>"
            assert repr(channel.handle("q", print)) == (
                "<Worker of queue 'q', 0 running, 0 handled, 0 failed>"
            )
        assert repr(connection).endswith("closed>")
        assert "closed" in repr(channel)
