"""Declarations by callers that have no connection."""

from __future__ import annotations

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.front.operations.declare import (
    ExchangeOptions,
    QueueOptions,
    declare_exchange,
    declare_queue,
    find_exchange,
    find_queue,
    make_queue,
)
from harebell.model.settings.vhost_limits import COMPONENT, NAME
from tests.unit.front.operations.world import Operations


def test_a_queue_is_declared_and_found_without_a_connection() -> None:
    world = Operations()
    caller = world.everything()
    queue = declare_queue(caller, "q", QueueOptions(durable=True))
    assert world.vhost.queues["q"] is queue
    assert find_queue(caller, "q") is queue
    assert declare_queue(caller, "q", QueueOptions(durable=True)) is queue


def test_a_different_declaration_is_refused() -> None:
    caller = Operations().everything()
    declare_queue(caller, "q", QueueOptions(durable=True))
    with pytest.raises(Refusal, match="inequivalent arg 'durable'"):
        declare_queue(caller, "q", QueueOptions())


def test_a_declaration_needs_the_permission_to_configure() -> None:
    world = Operations()
    with pytest.raises(Refusal, match="configure access to queue 'q' in vhost '/' refused") as told:
        declare_queue(world.caller(write=".*", read=".*"), "q", QueueOptions())
    assert told.value.kind is ErrorKind.ACCESS_REFUSED
    assert world.vhost.queues == {}


def test_an_exclusive_queue_is_its_owners() -> None:
    world = Operations()
    owner = object()
    declare_queue(world.everything(owner), "q", QueueOptions(exclusive=True))
    with pytest.raises(Refusal) as told:
        find_queue(world.everything(object()), "q")
    assert told.value.kind is ErrorKind.RESOURCE_LOCKED


def test_the_limit_of_the_vhost_comes_before_the_checks_of_a_version() -> None:
    world = Operations()
    world.vhost.parameters.put(COMPONENT, NAME, {"max-queues": 1})
    caller = world.everything()
    declare_queue(caller, "a", QueueOptions())
    checked: list[str] = []
    with pytest.raises(Refusal, match="queue limit in vhost '/' \\(1\\) is reached"):
        make_queue(caller, "b", QueueOptions(), lambda: checked.append("b"))
    assert checked == []


def test_a_queue_that_exists_is_not_checked_like_a_new_one() -> None:
    caller = Operations().everything()
    declare_queue(caller, "q", QueueOptions())
    checked: list[str] = []
    make_queue(caller, "q", QueueOptions(), lambda: checked.append("q"))
    assert checked == []


def test_arguments_without_effect_are_logged() -> None:
    world = Operations()
    declare_queue(world.everything(), "q", QueueOptions(arguments={"x-queue-mode": "lazy"}))
    assert world.log == [("warning", "queue 'q': no effect in this version: x-queue-mode")]


def test_dead_letters_go_only_where_the_user_may_publish() -> None:
    world = Operations()
    caller = world.caller(configure=".*", read=".*", write="^q$")
    arguments = {"x-dead-letter-exchange": "secret"}
    with pytest.raises(Refusal, match="write access to exchange 'secret'"):
        declare_queue(caller, "q", QueueOptions(arguments=arguments))


def test_an_exchange_is_declared_and_found_without_a_connection() -> None:
    world = Operations()
    caller = world.everything()
    exchange = declare_exchange(caller, "e", "fanout", ExchangeOptions(durable=True))
    assert find_exchange(caller, "e") is exchange
    with pytest.raises(Refusal, match="inequivalent arg 'type'"):
        declare_exchange(caller, "e", "direct", ExchangeOptions(durable=True))


def test_an_alternate_exchange_has_to_be_writable() -> None:
    world = Operations()
    caller = world.caller(configure=".*", read=".*")
    options = ExchangeOptions(arguments={"alternate-exchange": "other"})
    with pytest.raises(Refusal, match="write access to exchange 'other'"):
        declare_exchange(caller, "e", "fanout", options)
