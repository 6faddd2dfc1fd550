"""Reading from queues, purging and deleting them, by callers that have no connection."""

from __future__ import annotations

import pytest

from harebell.base.errors import ErrorKind, Refusal
from harebell.base.message import Message, Properties
from harebell.front.common.permission import QUEUE
from harebell.front.operations.bind import check_binding
from harebell.front.operations.declare import QueueOptions, declare_queue
from harebell.front.operations.delete import deletable_exchange, deletable_queue, deletion
from harebell.front.operations.get import readable_queue
from harebell.front.operations.publish import writable_exchange
from harebell.front.operations.purge import purge_queue
from tests.unit.front.operations.world import Operations


def world_with_messages(count: int) -> Operations:
    world = Operations()
    queue = declare_queue(world.everything(), "q", QueueOptions())
    for _ in range(count):
        queue.publish(Message("", "q", Properties(b"\0\0"), b"x"))
    return world


def test_a_purge_says_how_many_messages_are_gone() -> None:
    world = world_with_messages(3)
    assert purge_queue(world.everything(), "q").count == 3
    assert world.vhost.queues["q"].ready_count() == 0


def test_a_purge_needs_the_permission_to_read() -> None:
    world = world_with_messages(1)
    with pytest.raises(Refusal, match="read access to queue 'q' in vhost '/' refused"):
        purge_queue(world.caller(configure=".*", write=".*"), "q")
    assert world.vhost.queues["q"].ready_count() == 1


def test_without_read_permission_a_missing_queue_is_refused_like_any() -> None:
    world = Operations()
    with pytest.raises(Refusal) as refused:
        readable_queue(world.caller(), "missing")
    assert refused.value.kind is ErrorKind.ACCESS_REFUSED
    with pytest.raises(Refusal) as missing:
        readable_queue(world.everything(), "missing")
    assert missing.value.kind is ErrorKind.NOT_FOUND


def test_a_queue_is_deleted_in_steps_after_its_conditions_were_checked() -> None:
    world = world_with_messages(1)
    caller = world.everything()
    with pytest.raises(Refusal, match="not empty"):
        deletable_queue(caller, "q", if_unused=False, if_empty=True)
    queue = deletable_queue(caller, "q", if_unused=True, if_empty=False)
    step = deletion(world.vhost, queue, lambda: world.vhost.delete_queue("q"))
    while not step():
        pass
    assert world.vhost.queues == {}
    assert deletable_queue(caller, "q", if_unused=False, if_empty=False) is None


def test_an_exchange_is_deleted_by_who_may_configure_it() -> None:
    world = Operations()
    assert deletable_exchange(world.everything(), "missing") is None
    with pytest.raises(Refusal, match="configure access to exchange 'e'"):
        deletable_exchange(world.caller(), "e")


def test_a_binding_needs_writing_to_one_end_and_reading_from_the_other() -> None:
    world = Operations()
    check_binding(world.caller(write="^q$", read="^e$"), QUEUE, "q", "e", "key")
    with pytest.raises(Refusal, match="write access to queue 'q'"):
        check_binding(world.caller(read=".*"), QUEUE, "q", "e", "key")
    with pytest.raises(Refusal, match="read access to exchange 'e'"):
        check_binding(world.caller(write=".*"), QUEUE, "q", "e", "key")
    with pytest.raises(Refusal, match="default exchange"):
        check_binding(world.everything(), QUEUE, "q", "", "key")


def test_a_publish_to_an_internal_exchange_is_refused() -> None:
    world = Operations()
    world.vhost.declare_exchange("inner", "fanout", internal=True)
    world.vhost.declare_exchange("outer", "fanout")
    caller = world.caller(write="er$")
    assert writable_exchange(caller, "outer", ValueError) is world.vhost.exchanges["outer"]
    with pytest.raises(ValueError, match="cannot publish to internal exchange 'inner'"):
        writable_exchange(caller, "inner", ValueError)
