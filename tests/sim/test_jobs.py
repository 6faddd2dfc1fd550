"""The process or the power goes at any moment while a job moves messages: each is in one queue.

A slice of a job takes messages out of one log, appends them to another and stores how far it is.
Large messages are written early, before the commit, unless the log knows that a crash must not
separate these changes.
"""

from __future__ import annotations

from collections import Counter

import pytest

from harebell.base.message import PERSISTENT
from harebell.front.convert import composed
from harebell.model.jobs import COPY, DISCARD, DONE, MOVE, RESTORE, RETRY, Job, Orders
from harebell.store.limits import SEGMENT_BYTES, WRITE_EARLY_BYTES
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.sim.machine import DiskBroker

_DEAD = {"x-first-death-queue": "target"}
BODY_BYTES = 65_000
MESSAGES = 2 * WRITE_EARLY_BYTES // BODY_BYTES


def _bodies(broker: DiskBroker, name: str) -> Counter[bytes]:
    queue = broker.vhost.queues[name]
    log = broker.disk_store.logs[queue.identity]
    found: Counter[bytes] = Counter()
    position = log.first()
    while position < log.end():
        message = log.read(position)
        assert message is not None
        found[message.body[:4]] += 1
        position = log.next(position + 1)
    return found


def _ended(broker: DiskBroker, orders: Orders) -> Job:
    job = broker.broker.jobs.start(orders)
    while broker.commit():
        pass
    assert job.state == DONE
    return job


@pytest.mark.parametrize("power", [False, True], ids=["process", "power"])
@pytest.mark.parametrize("verb", [MOVE, COPY, RETRY, DISCARD, RESTORE])
def test_a_job_that_is_cut_short_has_no_message_in_two_queues(verb: str, power: bool) -> None:
    rng = Random(f"{verb} {power}")
    disk = SimDisk()
    definitions = SimDefinitions(disk)
    broker = DiskBroker(disk, definitions, segment_bytes=SEGMENT_BYTES)
    for name in ("source", "target"):
        broker.vhost.declare_queue(name, durable=True)
    sent = Counter(b"%04d" % number for number in range(MESSAGES))
    begin = "target" if verb == RESTORE else "source"
    for head in sent:
        body = head + bytes(BODY_BYTES)
        message = composed("", begin, body, {"headers": _DEAD, "delivery_mode": PERSISTENT})
        broker.vhost.queues[begin].publish(message)
    broker.commit()
    undoes = 0
    if verb == RESTORE:
        undoes = _ended(broker, Orders(DISCARD, "/", "target", routing_key="source")).number
    moved = set()

    def crash() -> None:
        image = disk.crash(rng) if power else disk.copy()
        found = DiskBroker(image, definitions.crash(image, rng), segment_bytes=SEGMENT_BYTES)
        job = next((each for each in found.broker.jobs.all() if each.orders.verb == verb), None)
        done = 0 if job is None else job.done
        target = _bodies(found, "target")
        assert target.total() == done, f"{target.total()} messages are there, {done} were {verb}d"
        left = sent if verb == COPY else sent - target
        assert _bodies(found, "source") == left
        moved.add(done)

    disk.after = crash
    key = None if verb == RETRY else "target"
    _ended(broker, Orders(verb, "/", "source", routing_key=key, undoes=undoes))
    disk.after = None
    # The log of the jobs is there already: then all of it is one write.
    assert moved >= ({MESSAGES} if undoes else {0, MESSAGES})
    assert _bodies(broker, "target") == sent
