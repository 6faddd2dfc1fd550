"""Judging what the broker delivered, where the reference leaves the choice to it.

A delivery is right when it goes to a consumer with credit, takes the oldest ready messages
first, carries the next delivery tag of its channel, is marked as redelivered exactly when the
message was delivered before, and passes over nobody of higher priority who had credit.
Consumers that never lack credit get even turns; which of several equal ones is next is the
broker's to choose. In the end no message may be ready beside a consumer with credit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.model.things import Consumer

if TYPE_CHECKING:
    from tests.model.reference import Reference


def judge(broker: Reference, deliveries: list[tuple[int, tuple[Any, ...]]]) -> None:
    """Take deliveries as the broker made them, or raise AssertionError for a wrong one."""
    before = {name: [e.position for e in q.ready] for name, q in broker.queues.items()}
    went: dict[str, list[int]] = {}
    used: list[Consumer] = []
    latest: dict[Consumer, int] = {}
    for connection, event in deliveries:
        number, tag, delivery_tag, redelivered, exchange, key, body = event
        channel = broker.channels[connection, number]
        consumer = channel.consumers[tag]
        queue = consumer.queue
        found = [e for e in queue.ready if e.message.body == body]
        assert found, f"{body!r} is not ready in {queue.name}"
        entry = found[0]
        message = entry.message
        assert (exchange, key) == (message.exchange, message.key)
        assert redelivered == entry.redelivered, f"{body!r}: redelivered is wrong"
        assert consumer.credit(), f"{body!r} went to {tag}, which has no credit"
        queue.ready.remove(entry)
        given = broker.hand_over(channel, queue, entry, consumer, consumer.no_ack)
        assert delivery_tag == given, f"delivery tag {delivery_tag}, not {given}"
        consumer.served += 1
        used.append(consumer)
        in_order = latest.get(consumer, 0) < entry.position
        assert in_order or broker.out_of_order, f"{body!r} came to {tag} after a later message"
        latest[consumer] = entry.position
        went.setdefault(queue.name, []).append(entry.position)
    _judge_order(broker, before, went)
    _judge_choice(broker, used)


def _judge_order(
    broker: Reference, before: dict[str, list[int]], went: dict[str, list[int]]
) -> None:
    """The oldest went first, and nothing waits that could go."""
    for name, positions in went.items():
        if not broker.out_of_order:
            oldest = before[name][: len(positions)]
            assert sorted(positions) == oldest, f"{name}: not the oldest messages were taken"
    for queue in broker.queues.values():
        if queue.ready:
            idle = [c.tag for c in queue.consumers if c.credit()]
            assert not idle, f"{queue.name} has messages, and {idle} could take them"


def _judge_choice(broker: Reference, used: list[Consumer]) -> None:
    """Priorities were kept, and equals had even turns."""
    for consumer in used:
        rivals = consumer.queue.consumers
        passed = [c.tag for c in rivals if c.priority > consumer.priority and c.credit()]
        assert broker.out_of_order or not passed, f"{passed} come before {consumer.tag}"
        free = all(c.no_ack for c in rivals)
        if free and len({c.priority for c in rivals}) == 1:
            counts = [c.served for c in rivals]
            assert max(counts) - min(counts) <= 1, f"uneven turns: {counts}"
