"""The log in memory: positions, and octets counted in and out."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from harebell.base.gauge import Gauge
from harebell.base.message import Message, Properties
from harebell.store.log.memory import MemoryLog, MemoryStore


def message(body: bytes) -> Message:
    return Message("", "q", Properties(b"\0\0"), body)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.one_of(st.binary(max_size=20), st.integers(0, 30)), max_size=60))
def test_the_log_keeps_what_is_not_settled_and_counts_it(script: list[bytes | int]) -> None:
    gauge = Gauge()
    log = MemoryLog(gauge)
    kept: dict[int, Message] = {}
    end = 0
    for step in script:
        if isinstance(step, bytes):
            record = message(step)
            assert log.append(record) == end
            kept[end] = record
            end += 1
        else:
            log.settle(step)
            kept.pop(step, None)
        assert log.end() == end
        assert log.first() == min(kept, default=end)
        assert gauge.used == sum(record.footprint() for record in kept.values())
    for position in range(end + 1):
        assert log.read(position) is kept.get(position)


def test_settling_twice_counts_once() -> None:
    gauge = Gauge()
    log = MemoryLog(gauge)
    log.append(message(b"stays"))
    gone = log.append(message(b"goes"))
    log.settle(gone)
    used = gauge.used
    log.settle(gone)
    assert gauge.used == used > 0


def test_deleting_frees_every_record_and_positions_are_not_used_again() -> None:
    gauge = Gauge()
    log = MemoryLog(gauge)
    for _ in range(300):
        log.append(message(b"x"))
    log.delete()
    assert gauge.used == 0
    assert log.append(message(b"y")) == 300


def test_behind_the_end_nothing_comes_next() -> None:
    log = MemoryLog(Gauge())
    for _ in range(3):
        log.append(Message("", "", Properties(b"\0\0"), b""))
    log.settle(2)
    assert [log.next(position) for position in (0, 2, 3, 4, 100)] == [0, 3, 3, 3, 3]


def test_logs_of_a_store_share_the_gauge_and_nothing_else() -> None:
    gauge = Gauge()
    store = MemoryStore(gauge)
    one, other = store.open_log("a", durable=True), store.open_log("b", durable=True)
    record = message(b"x")
    assert one.append(record) == other.append(record) == 0
    one.delete()
    assert other.read(0) is record
    assert gauge.used == record.footprint()


def test_definitions_come_back_by_kind_in_the_order_of_their_making() -> None:
    definitions = MemoryStore(Gauge()).definitions
    definitions.put("queue", ("/", "b"), {"kind": "classic"})
    definitions.put("queue", ("/", "a"), {"kind": "classic"})
    definitions.put("queue", ("/", "b"), {"kind": "stream"})
    definitions.drop("queue", ("/", "missing"))
    definitions.drop("exchange", ("/", "missing"))
    rows = [(("/", "b"), {"kind": "stream"}), (("/", "a"), {"kind": "classic"})]
    assert list(definitions.load("queue")) == rows
    definitions.drop("queue", ("/", "b"))
    assert list(definitions.load("queue")) == rows[1:]
    assert list(definitions.load("exchange")) == []


def test_messages_in_memory_are_never_waited_for() -> None:
    commit = MemoryStore(Gauge()).commit
    assert commit.done >= commit.ticket
