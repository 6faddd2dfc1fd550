"""Harebell's own classes are served from the first method on, though nobody imported them yet."""

from __future__ import annotations

from harebell.front.amqp_0_9_1 import bulk, bulk_names, history, lease, publisher, query, stage
from harebell.front.amqp_0_9_1.extensions import HANDLERS
from harebell.front.amqp_0_9_1.profile_0_9_1 import PROFILE_0_9_1
from harebell.wire.v09.methods import BulkSpan, BulkSpanOk, QueueDeclare
from tests.unit.front.amqp_0_9_1.world import World


def test_every_method_that_a_file_serves_is_one_that_clients_may_send() -> None:
    served = set[type]().union(
        *(file.HANDLERS for file in (bulk, bulk_names, history, lease, publisher, query, stage))
    )
    assert set(HANDLERS) == served
    assert served <= set(PROFILE_0_9_1.handlers)


def test_a_method_reaches_the_file_of_its_class() -> None:
    peer = World().peer()
    peer.send(QueueDeclare("q", durable=True))
    peer.methods()
    peer.send(BulkSpan(queue="q"))
    (answer,) = peer.methods()
    assert isinstance(answer, BulkSpanOk)
    assert (answer.kind, answer.messages) == ("classic", 0)
