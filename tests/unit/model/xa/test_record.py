"""The record of a prepared branch is read as it was written, and damage in it is found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harebell.base.message import Message, Properties
from harebell.model.queue.contract import Queue
from harebell.model.transaction import due_at_commit
from harebell.model.xa.record import (
    BranchRecord,
    Publish,
    RecordedQueue,
    RecordError,
    Settlement,
    decode,
)
from harebell.model.xa.states import State
from harebell.model.xa.xid import Xid


def _message(body: bytes, due: int = 0, family: int = 9) -> Message:
    properties = Properties(b"\x90\x00raw", delivery_mode=2, priority=7, has_headers=True)
    properties.family = family
    message = Message("exchange", "key", properties, body)
    message.due = due
    return message


def _record() -> BranchRecord:
    record = BranchRecord(Xid(1, b"tx", b"br"), "/", "guest", moment=12, timeout=60)
    one, two = Queue("one", "/"), Queue("zwei ä", "/")
    one.identity, two.identity = "1" * 32, "2" * 32
    assert (record.number(one), record.number(two), record.number(one)) == (0, 1, 0)
    record.publishes.append(Publish(_message(b"for both"), (0, 1)))
    record.publishes.append(Publish(_message(b"", due_at_commit(500), family=10), (1,)))
    record.publishes.append(Publish(_message(b"later", 99_000), (0,)))
    record.settlements += [Settlement(0, 2**40, 0), Settlement(1, 5, 3)]
    return record


def test_a_record_is_read_as_it_was_written() -> None:
    found = decode(_record().encode())
    assert (found.xid, found.vhost, found.user) == (Xid(1, b"tx", b"br"), "/", "guest")
    assert (found.state, found.moment, found.timeout) == (State.PREPARED, 12, 60)
    assert found.queues == [RecordedQueue("one", "1" * 32), RecordedQueue("zwei ä", "2" * 32)]
    assert [each.queues for each in found.publishes] == [(0, 1), (1,), (0,)]
    first, second, third = (each.message for each in found.publishes)
    assert (first.exchange, first.routing_key, first.body) == ("exchange", "key", b"for both")
    assert (first.raw, first.delivery_mode, first.priority) == (b"\x90\x00raw", 2, 7)
    assert (first.has_headers, first.family, first.due, first.timestamp) == (True, 9, 0, 0)
    assert (second.body, second.family, second.due) == (b"", 10, due_at_commit(500))
    assert third.due == 99_000
    assert found.settlements == [Settlement(0, 2**40, 0), Settlement(1, 5, 3)]


@pytest.mark.parametrize("state", [State.DECIDED_COMMIT, State.DECIDED_ROLLBACK])
def test_a_decision_is_a_record_without_work(state: State) -> None:
    found = decode(BranchRecord(Xid(0, b"", b""), "v", "u", state).encode())
    assert (found.state, found.queues, found.publishes) == (state, [], [])


def test_every_record_that_was_cut_is_refused() -> None:
    octets = _record().encode()
    for end in range(len(octets)):
        with pytest.raises(RecordError):
            decode(octets[:end])
    with pytest.raises(RecordError, match="1 octets are left over"):
        decode(octets + b"\0")


def test_a_record_of_a_later_version_says_so() -> None:
    octets = bytearray(_record().encode())
    octets[0] = 2
    with pytest.raises(RecordError, match="format is 2, and this version reads 1"):
        decode(bytes(octets))
    octets[:2] = b"\1\7"
    with pytest.raises(RecordError, match="no state 7"):
        decode(bytes(octets))


@given(st.binary(max_size=200))
def test_octets_that_are_none_end_in_an_error_and_nothing_else(octets: bytes) -> None:
    with pytest.raises(RecordError):
        decode(octets)


@given(st.integers(0, 500), st.integers(1, 255))
def test_a_changed_octet_ends_in_an_error_or_another_record(at: int, change: int) -> None:
    octets = bytearray(_record().encode())
    octets[at % len(octets)] ^= change
    try:
        found = decode(bytes(octets))
    except RecordError:
        return
    assert all(n < len(found.queues) for each in found.publishes for n in each.queues)
    assert all(each.queue < len(found.queues) for each in found.settlements)
