"""Messages that come back with other headers: where they are then, and after a restart."""

from __future__ import annotations

from typing import Any

import pytest

from harebell.front.convert import EDITOR
from harebell.model.queue.contract import Queue
from harebell.model.remark import Remark
from tests.sim.definitions import SimDefinitions
from tests.sim.disk import Random, SimDisk
from tests.sim.machine import DiskBroker

KINDS: dict[str, dict[str, Any]] = {
    "classic": {},
    "priority": {"x-max-priority": 5},
    "quorum": {"x-queue-type": "quorum"},
}


class Place:
    """A broker on a disk, with one durable queue."""

    def __init__(self, arguments: dict[str, Any]) -> None:
        self.disk = SimDisk()
        self.real = DiskBroker(self.disk, SimDefinitions(self.disk))
        self._vhost().declare_queue("q", durable=True, arguments=arguments)

    def _vhost(self) -> Any:
        return self.real.broker.vhosts["/"]

    @property
    def queue(self) -> Queue:
        return self._vhost().queues["q"]

    def publish(self, *bodies: bytes, **headers: Any) -> None:
        for body in bodies:
            properties = {"delivery_mode": 2, "headers": headers}
            self.queue.publish(EDITOR.composed("", "q", body, properties))

    def restart(self) -> None:
        """The power goes; what was committed is there again."""
        while self.real.commit():
            pass
        rng = Random(1)
        self.disk = self.disk.crash(rng)
        definitions = self.real.definitions.crash(self.disk, rng)
        self.real = DiskBroker(self.disk, definitions, 1)
        assert not self.real.reports, self.real.reports

    def got(self) -> tuple[bytes, int, bool, dict[str, Any], int]:
        found = self.queue.get()
        assert found is not None
        message, position, redelivered = found
        headers = dict(EDITOR.headers_of(message))
        return message.body, position, bool(redelivered), headers, message.deliveries


@pytest.fixture(params=KINDS)
def place(request: pytest.FixtureRequest) -> Place:
    return Place(KINDS[request.param])


def test_a_changed_message_is_next_and_keeps_its_headers_over_a_restart(place: Place) -> None:
    place.publish(b"a", b"b", b"c", x_old=1)
    assert place.got()[0] == b"a"
    position = place.got()[1]
    place.queue.requeue_changed(position, Remark({"x-new": 2}), failed=True)
    body, _, redelivered, headers, deliveries = place.got()
    assert (body, redelivered, deliveries) == (b"b", True, 1)
    assert headers == {"x_old": 1, "x-new": 2}
    assert place.queue.unacked == 2
    place.restart()
    # The log has it behind the others now.
    found = [place.got() for _ in range(3)]
    assert [each[0] for each in found] == [b"a", b"c", b"b"]
    assert found[2][2:] == (True, {"x_old": 1, "x-new": 2}, 1)
    assert place.queue.get() is None
    for each in found:
        place.queue.settle(each[1])
    place.restart()
    assert place.queue.get() is None


def test_changed_messages_come_in_the_order_in_which_they_came_back(place: Place) -> None:
    place.publish(*(b"%d" % number for number in range(5)))
    positions = [place.got()[1] for _ in range(4)]
    for position in (positions[1], positions[0], positions[2]):
        place.queue.requeue_changed(position, Remark({"x-new": 1}), failed=False)
    assert [place.got()[0] for _ in range(3)] == [b"1", b"0", b"2"]
    assert place.got()[0] == b"4"


def test_a_deleted_queue_changes_nothing(place: Place) -> None:
    place.publish(b"a")
    queue, position = place.queue, place.got()[1]
    place.real.broker.vhosts["/"].delete_queue("q")
    queue.requeue_changed(position, Remark({"x-new": 1}), failed=False)
    queue.requeue_failed(position)
    queue.reject_because(position, Remark())
    assert queue.unacked == 0


def test_an_open_batch_hides_a_changed_message_until_it_ends(place: Place) -> None:
    place.publish(b"a")
    position = place.got()[1]
    place.queue.begin_batch()
    place.queue.requeue_changed(position, Remark({"x-new": 1}), failed=False)
    assert place.queue.unacked == 0
    assert place.queue.get() is None
    place.queue.roll_back_batch()
    assert place.got()[0::3] == (b"a", {"x-new": 1})


def test_a_duplicate_of_a_changed_message_is_still_one() -> None:
    place = Place({"x-message-deduplication": True})
    place.publish(b"a", **{"x-deduplication-header": "id"})
    position = place.got()[1]
    place.queue.requeue_changed(position, Remark({"x-new": 1}), failed=False)
    place.publish(b"b", **{"x-deduplication-header": "id"})
    position = place.got()[1]
    assert place.queue.get() is None
    place.queue.settle(position)
    place.publish(b"c", **{"x-deduplication-header": "id"})
    assert place.got()[0] == b"c"


def test_bytes_of_ready_messages_are_counted_once(place: Place) -> None:
    place.queue.configure({"max-length-bytes": 10_000})
    place.publish(b"a" * 100)
    assert place.queue.byte_count() == 100
    position = place.got()[1]
    place.queue.requeue_changed(position, Remark({"x-new": 1}), failed=False)
    assert place.queue.byte_count() == 100
    place.got()
    assert place.queue.limits.byte_count == 0  # type: ignore[attr-defined]
