"""The contract of a queue kind."""

from __future__ import annotations

import pytest

from harebell.model.queue.contract import Queue
from tests.unit.model.things import Taker, message


def test_a_new_queue_is_nobodys_and_empty() -> None:
    owner = object()
    queue = Queue("q", "/", durable=True, owner=owner, arguments={"x-a": 1})
    assert (queue.name, queue.vhost, queue.durable, queue.owner) == ("q", "/", True, owner)
    assert queue.itself == (queue,)
    assert queue.arguments == {"x-a": 1}
    assert not queue.deleted
    assert not queue.had_consumers


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("publish", (message(),)),
        ("ready_count", ()),
        ("get", ()),
        ("settle", (0,)),
        ("requeue", (0,)),
        ("drain", ()),
        ("purge", ()),
        ("delete", ()),
    ],
)
def test_a_kind_has_to_fill_every_part(name: str, arguments: tuple[object, ...]) -> None:
    with pytest.raises(NotImplementedError):
        getattr(Queue("q", "/"), name)(*arguments)


def test_a_kind_has_to_know_its_consumers() -> None:
    queue = Queue("q", "/")
    for name in ("add_consumer", "remove_consumer"):
        with pytest.raises(NotImplementedError):
            getattr(queue, name)(Taker(queue))
